#include "worker/agent/process_stats.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace muster {
namespace {

constexpr int64_t kMuchBytes = int64_t{96} << 20;

TEST(ProcessStatsTest, ThePeakStaysWhenMemoryIsGivenBack) {
  auto much = std::make_unique<std::string>(kMuchBytes, 'x');
  EXPECT_GE(ResidentBytes(getpid()), kMuchBytes);
  much.reset();
  EXPECT_LT(ResidentBytes(getpid()), kMuchBytes);
  EXPECT_GE(PeakResidentBytes(getpid()), kMuchBytes);
}

TEST(ProcessStatsTest, AProcessThatIsNotThereHasNothing) {
  constexpr pid_t kNoProcess = 1 << 23;  // above the kernel's highest id
  EXPECT_EQ(ResidentBytes(kNoProcess), 0);
  EXPECT_EQ(PeakResidentBytes(kNoProcess), 0);
}

TEST(ProcessStatsTest, TheHostHasMoreThanThisProcess) { EXPECT_GT(HostMemoryBytes(), ResidentBytes(getpid())); }

}  // namespace
}  // namespace muster
