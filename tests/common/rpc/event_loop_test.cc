#include "common/rpc/event_loop.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/support/fake_clock.h"

namespace muster {
namespace {

TEST(EventLoopTest, RunsTasksInTheOrderPosted) {
  FakeClock clock;
  EventLoop loop(&clock);
  std::string order;
  loop.Post([&] { order += "a"; });
  loop.Post([&] {
    order += "b";
    loop.Post([&] { order += "d"; });
  });
  loop.Post([&] { order += "c"; });
  loop.RunReady();
  EXPECT_EQ(order, "abcd");
}

TEST(EventLoopTest, RunsTimersWhenTheyAreDueAndInTheirOrder) {
  FakeClock clock;
  EventLoop loop(&clock);
  std::string order;
  loop.After(absl::Seconds(2), [&] { order += "2"; });
  loop.After(absl::Seconds(1), [&] { order += "1"; });
  loop.RunReady();
  EXPECT_EQ(order, "");
  clock.Advance(absl::Seconds(1));
  loop.RunReady();
  EXPECT_EQ(order, "1");
  clock.Advance(absl::Seconds(1));
  loop.RunReady();
  EXPECT_EQ(order, "12");
}

TEST(EventLoopTest, ACancelledTimerDoesNotRun) {
  FakeClock clock;
  EventLoop loop(&clock);
  bool ran = false;
  const EventLoop::TimerId timer = loop.After(absl::Seconds(1), [&] { ran = true; });
  loop.CancelTimer(timer);
  clock.Advance(absl::Seconds(5));
  loop.RunReady();
  EXPECT_FALSE(ran);
}

TEST(EventLoopTest, AnotherThreadsTimerShortensTheWait) {
  const auto clock = MakeSystemClock();
  EventLoop loop(clock.get());
  std::thread thread([&] { loop.Run(); });
  loop.After(absl::Milliseconds(1), [&] { loop.Stop(); });
  thread.join();  // would hang, waiting for ever, if the timer were not seen
}

TEST(EventLoopTest, StopRunsWhatWasPostedBefore) {
  FakeClock clock;
  EventLoop loop(&clock);
  bool ran = false;
  loop.Post([&] { loop.Stop(); });
  loop.Post([&] { ran = true; });
  loop.Run();
  EXPECT_TRUE(ran);
}

TEST(EventLoopDeathTest, BeingOffTheLoopAborts) {
  FakeClock clock;
  EventLoop loop(&clock);
  EXPECT_DEATH(loop.AssertHeld(), "off the event loop");
}

}  // namespace
}  // namespace muster
