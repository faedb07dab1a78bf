// That the CUDA back-end defines all that kernels.h and context.h declare. Needs the toolkit and no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "worker/kernels/context.h"
#include "worker/kernels/kernels.h"

namespace muster {
namespace {

TEST(CudaBackendTest, DefinesEveryOperation) {
  // Linking is the test; the addresses keep the linker from dropping any.
  using Function = void (*)();
  const Function functions[] = {
      reinterpret_cast<Function>(&kernels::MatMul),
      reinterpret_cast<Function>(&kernels::EmbeddingForward),
      reinterpret_cast<Function>(&kernels::EmbeddingBackward),
      reinterpret_cast<Function>(&kernels::LayerNormForward),
      reinterpret_cast<Function>(&kernels::LayerNormBackward),
      reinterpret_cast<Function>(&kernels::RmsNormForward),
      reinterpret_cast<Function>(&kernels::RmsNormBackward),
      reinterpret_cast<Function>(&kernels::Add),
      reinterpret_cast<Function>(&kernels::GeluForward),
      reinterpret_cast<Function>(&kernels::GeluBackward),
      reinterpret_cast<Function>(&kernels::SwiGluForward),
      reinterpret_cast<Function>(&kernels::SwiGluBackward),
      reinterpret_cast<Function>(&kernels::BiasGradient),
      reinterpret_cast<Function>(&kernels::Zero),
      reinterpret_cast<Function>(&kernels::Cast),
      reinterpret_cast<Function>(&kernels::Copy),
      reinterpret_cast<Function>(&kernels::SumInOrder),
      reinterpret_cast<Function>(&kernels::FillRopeTable),
      reinterpret_cast<Function>(&kernels::Rope),
      reinterpret_cast<Function>(&kernels::AttentionForward),
      reinterpret_cast<Function>(&kernels::AttentionBackward),
      reinterpret_cast<Function>(&kernels::CrossEntropyStatistics),
      reinterpret_cast<Function>(&kernels::CrossEntropyFromStatistics),
      reinterpret_cast<Function>(&kernels::CrossEntropyBackward),
      reinterpret_cast<Function>(&kernels::SumToHost),
      reinterpret_cast<Function>(&kernels::SumOfSquaresToHost),
      reinterpret_cast<Function>(&kernels::AdamW),
      reinterpret_cast<Function>(&KernelContext::Create),
  };
  for (const Function function : functions) EXPECT_NE(function, nullptr);
}

TEST(CudaBackendTest, SaysThatThereIsNoSuchDevice) {
  const absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(1000);
  EXPECT_EQ(device.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(device.status().message()), testing::HasSubstr("no CUDA device"));
}

}  // namespace
}  // namespace muster
