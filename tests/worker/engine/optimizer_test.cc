#include "worker/engine/optimizer.h"

#include <gtest/gtest.h>

#include <vector>

#include "worker/kernels/context.h"

namespace muster {
namespace {

TEST(ClipFactor, ShrinksALongGradientToTheLimit) {
  EXPECT_NEAR(ClipFactor(4, 1), 0.25, 1e-6);
  EXPECT_LT(ClipFactor(4, 1), 0.25) << "the norm is enlarged by 1e-6, as PyTorch does";
}

TEST(ClipFactor, LeavesAShortGradientAlone) {
  EXPECT_EQ(ClipFactor(0.5, 1), 1);
  EXPECT_EQ(ClipFactor(0, 1), 1);
}

TEST(ClipFactor, LeavesEveryGradientAloneWithoutALimit) { EXPECT_EQ(ClipFactor(1e6, 0), 1); }

TEST(Optimizer, DoesNotRoundItsOptions) {
  const std::unique_ptr<Device> device = OpenDevice(0).value();
  std::vector<double> workspace(KernelWorkspaceBytes(1) / sizeof(double));
  const Tensor workspace_bytes(workspace.data(), DType::kU8, {KernelWorkspaceBytes(1)});
  const auto kernels = KernelContext::Create(*device, {.threads = 1}, workspace_bytes).value();
  float gradient = 1, master = 0, first = 0, second = 0;
  const auto tensor = [](float& value) { return Tensor(&value, DType::kF32, {1}); };
  std::vector<StageParameter> parameters(1);
  parameters[0].updated.push_back({.value = tensor(master),
                                   .gradient = tensor(gradient),
                                   .master = tensor(master),
                                   .first = tensor(first),
                                   .second = tensor(second)});
  Optimizer(*kernels, parameters, {.beta1 = 0.9, .beta2 = 0.999}).Step(1, 1e-3, 1);
  EXPECT_FLOAT_EQ(first, 0.1f);
  EXPECT_FLOAT_EQ(second, 0.001f) << "1 - 0.999 of f32 is off by one part in 80,000";
}

}  // namespace
}  // namespace muster
