// What a machine with one GPU or none can show of the NCCL back-end.
#include "worker/comm/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/memory_rendezvous_store.h"

namespace muster {
namespace {

int Devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

TEST(NcclCommunicatorTest, ADeviceThatIsNotThereIsNamed) {
  MemoryRendezvousStore store;
  NcclOptions options;
  options.device = Devices();  // the first that does not exist
  const absl::Status status = MakeNcclCommunicator(options, store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(absl::StrCat("CUDA device ", Devices())));
  EXPECT_EQ(store.Get("nccl/world", absl::ZeroDuration()).status().code(), absl::StatusCode::kDeadlineExceeded)
      << "a rank without a device must not invite others";
}

TEST(NcclCommunicatorTest, AWorldOfOneRunsWhereThereIsADevice) {
  MemoryRendezvousStore store;
  auto world = MakeNcclCommunicator(NcclOptions(), store);
  ASSERT_EQ(world.ok(), Devices() > 0) << world.status();
  if (!world.ok()) return;
  std::vector<double> values = {1, 2};
  EXPECT_TRUE(AllReduceSum(**world, absl::MakeSpan(values)).ok());
  EXPECT_THAT(values, testing::ElementsAre(1, 2));
  auto group = (*world)->Split({0}, "alone");
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_TRUE(Barrier(**group).ok());
}

}  // namespace
}  // namespace muster
