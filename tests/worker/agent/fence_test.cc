#include "worker/agent/fence.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/fake_clock.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

class FenceTest : public testing::Test {
 protected:
  FenceTest() {
    stamp_.emplace(*LeaseStamp::Create(directory_.path() + "/lease"));
    reader_.emplace(*LeaseReader::Open(directory_.path() + "/lease"));
    fence_.emplace(&loop_, &clock_, &*stamp_, [this](absl::Duration silence) { silence_ = silence; });
  }

  void Advance(absl::Duration by) {
    clock_.Advance(by);
    loop_.RunReady();
  }
  bool LeaseHolds() { return reader_->Check(clock_.SinceBoot()).ok(); }

  TemporaryDirectory directory_;
  FakeClock clock_;
  EventLoop loop_{&clock_};
  std::optional<LeaseStamp> stamp_;
  std::optional<LeaseReader> reader_;
  std::optional<Fence> fence_;
  absl::Duration silence_;  // zero: it did not expire
};

TEST_F(FenceTest, ExpiresWithoutAnswers) {
  EXPECT_FALSE(LeaseHolds());
  fence_->OnWelcome(clock_.SinceBoot(), absl::Seconds(60));
  EXPECT_TRUE(LeaseHolds());
  Advance(absl::Seconds(59));
  EXPECT_EQ(silence_, absl::ZeroDuration());
  Advance(absl::Seconds(2));
  EXPECT_EQ(silence_, absl::Seconds(61));
  EXPECT_FALSE(LeaseHolds());
}

TEST_F(FenceTest, CountsFromWhenTheAnsweredHeartbeatWasSent) {
  fence_->OnWelcome(clock_.SinceBoot(), absl::Seconds(60));
  Advance(absl::Seconds(10));
  fence_->OnHeartbeatSent(1);
  Advance(absl::Seconds(40));
  fence_->OnHeartbeatAcknowledged(1);  // 40 s late: good until second 70 and not 110
  Advance(absl::Seconds(19));
  EXPECT_EQ(silence_, absl::ZeroDuration());
  EXPECT_TRUE(LeaseHolds());
  Advance(absl::Seconds(2));
  EXPECT_EQ(silence_, absl::Seconds(61));
}

TEST_F(FenceTest, AnUnansweredHeartbeatExtendsNothing) {
  fence_->OnWelcome(clock_.SinceBoot(), absl::Seconds(60));
  Advance(absl::Seconds(50));
  fence_->OnHeartbeatSent(1);
  fence_->OnHeartbeatAcknowledged(7);  // never sent
  Advance(absl::Seconds(11));
  EXPECT_EQ(silence_, absl::Seconds(61));
}

TEST_F(FenceTest, ANewSessionArmsItAgain) {
  fence_->OnWelcome(clock_.SinceBoot(), absl::Seconds(60));
  Advance(absl::Seconds(61));
  EXPECT_EQ(silence_, absl::Seconds(61));
  silence_ = absl::ZeroDuration();
  fence_->OnWelcome(clock_.SinceBoot(), absl::Seconds(10));
  EXPECT_TRUE(LeaseHolds());
  Advance(absl::Seconds(11));
  EXPECT_EQ(silence_, absl::Seconds(11));
}

TEST_F(FenceTest, ZeroMeansNever) {
  fence_->OnWelcome(clock_.SinceBoot(), absl::ZeroDuration());
  Advance(absl::Hours(1000));
  EXPECT_EQ(silence_, absl::ZeroDuration());
  EXPECT_TRUE(LeaseHolds());
}

}  // namespace
}  // namespace muster
