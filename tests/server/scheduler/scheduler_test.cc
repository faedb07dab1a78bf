#include "server/scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::HasSubstr;

SchedulableWorker MakeWorker(const std::string& name, int64_t free, int64_t held = 0,
                             const std::string& holder = "job-1", int64_t memory_bytes = 1000) {
  SchedulableWorker worker;
  worker.name = name;
  for (int64_t index = 0; index < free + held; ++index) {
    SchedulableDevice device;
    device.index = index;
    device.kind = "cpu";
    device.memory_bytes = memory_bytes;
    device.free = index >= held;
    if (!device.free) device.holder = holder;
    worker.devices.push_back(device);
  }
  return worker;
}

WaitingJob MakeJob(const std::string& id, int64_t ranks, int64_t priority = 0, int64_t order = 0) {
  WaitingJob job;
  job.id = id;
  job.priority = priority;
  job.order = order;
  job.gang.device_kind = "cpu";
  job.gang.rank_bytes.assign(ranks, 1000);
  return job;
}

std::vector<std::string> Places(const ScheduledGang& gang) {
  std::vector<std::string> places;
  for (const DeviceChoice& choice : gang.ranks) places.push_back(choice.worker + ":" + std::to_string(choice.device));
  return places;
}

TEST(SchedulerTest, AGangIsPlacedWholeOrNotAtAll) {
  const Schedule schedule = MakeSchedule({{MakeWorker("a", 2), MakeWorker("b", 1)}, {MakeJob("job-2", 4)}});
  EXPECT_TRUE(schedule.start.empty());
  ASSERT_EQ(schedule.wait.size(), 1u);
  EXPECT_THAT(schedule.wait[0].reason, HasSubstr("waits for 4 cpu devices; 3 of 3 are free"));
  EXPECT_THAT(schedule.wait[0].reason, HasSubstr("start more workers"));
}

TEST(SchedulerTest, RanksFillOneWorkerAfterTheOtherInRankOrder) {
  const Schedule schedule =
      MakeSchedule({{MakeWorker("a", 1), MakeWorker("b", 2, 1), MakeWorker("c", 2)}, {MakeJob("job-2", 5)}});
  ASSERT_EQ(schedule.start.size(), 1u);
  EXPECT_THAT(Places(schedule.start[0]), testing::ElementsAre("b:1", "b:2", "c:0", "c:1", "a:0"));
}

TEST(SchedulerTest, AGangGoesToTheSmallestWorkerThatHoldsItAlone) {
  const Schedule schedule =
      MakeSchedule({{MakeWorker("a", 8), MakeWorker("b", 2), MakeWorker("c", 1)}, {MakeJob("job-2", 2)}});
  ASSERT_EQ(schedule.start.size(), 1u);
  EXPECT_THAT(Places(schedule.start[0]), testing::ElementsAre("b:0", "b:1"));
}

TEST(SchedulerTest, PriorityThenAgeAndNoDeviceTwice) {
  const Schedule schedule = MakeSchedule(
      {{MakeWorker("a", 2)}, {MakeJob("old", 1, 0, 1), MakeJob("older", 1, 0, 0), MakeJob("urgent", 1, 5, 2)}});
  ASSERT_EQ(schedule.start.size(), 2u);
  EXPECT_EQ(schedule.start[0].job_id, "urgent");
  EXPECT_EQ(schedule.start[1].job_id, "older");
  EXPECT_NE(Places(schedule.start[0]), Places(schedule.start[1]));
  ASSERT_EQ(schedule.wait.size(), 1u);
  EXPECT_EQ(schedule.wait[0].job_id, "old");
  EXPECT_EQ(schedule.wait[0].position, 1);
}

TEST(SchedulerTest, ASmallJobDoesNotPassALargeOneThatWaitsForDevicesInUse) {
  const Schedule schedule =
      MakeSchedule({{MakeWorker("a", 2, 2)}, {MakeJob("large", 4, 0, 0), MakeJob("small", 1, 0, 1)}});
  EXPECT_TRUE(schedule.start.empty());
  ASSERT_EQ(schedule.wait.size(), 2u);
  EXPECT_THAT(schedule.wait[0].reason, HasSubstr("2 of 4 are free, the rest is held by job-1"));
  EXPECT_EQ(schedule.wait[1].reason, "waits behind large");
  EXPECT_EQ(schedule.wait[1].position, 2);
  EXPECT_EQ(schedule.wait[1].length, 2);
}

TEST(SchedulerTest, AJobThatNoWorkerCouldHoldBlocksNobody) {
  const Schedule schedule =
      MakeSchedule({{MakeWorker("a", 2)}, {MakeJob("huge", 40, 9, 0), MakeJob("small", 1, 0, 1)}});
  ASSERT_EQ(schedule.start.size(), 1u);
  EXPECT_EQ(schedule.start[0].job_id, "small");
}

TEST(SchedulerTest, DevicesOfAnotherKindTooSmallOrUnhealthyAreNotTaken) {
  SchedulableWorker worker = MakeWorker("a", 4);
  worker.devices[0].kind = "cuda";
  worker.devices[1].memory_bytes = 999;
  worker.devices[2].unusable = "ECC errors";
  const Schedule one = MakeSchedule({{worker}, {MakeJob("job-2", 1)}});
  ASSERT_EQ(one.start.size(), 1u);
  EXPECT_THAT(Places(one.start[0]), testing::ElementsAre("a:3"));
  const Schedule two = MakeSchedule({{worker}, {MakeJob("job-2", 2)}});
  ASSERT_EQ(two.wait.size(), 1u);
  EXPECT_THAT(two.wait[0].reason, HasSubstr("1 more are too small"));
  EXPECT_THAT(two.wait[0].reason, HasSubstr("1 are out of order"));
}

TEST(SchedulerTest, AWorkerThatTakesNoRanksIsNamedWithItsReason) {
  SchedulableWorker worker = MakeWorker("a", 8);
  worker.unusable = "cordoned: new disk";
  const Schedule schedule = MakeSchedule({{worker}, {MakeJob("job-2", 1)}});
  ASSERT_EQ(schedule.wait.size(), 1u);
  EXPECT_THAT(schedule.wait[0].reason, HasSubstr("a has 8 free but is cordoned: new disk"));
}

TEST(SchedulerTest, AJobWhoseOldRanksMayLiveIsNotStartedAndHoldsBackNobody) {
  WaitingJob job = MakeJob("job-2", 1);
  job.not_before = "waits for the ranks of attempt 1 to end";
  const Schedule schedule = MakeSchedule({{MakeWorker("a", 1)}, {job, MakeJob("job-3", 1, 0, 1)}});
  ASSERT_EQ(schedule.start.size(), 1u);
  EXPECT_EQ(schedule.start[0].job_id, "job-3");
  EXPECT_EQ(schedule.wait[0].reason, job.not_before);
}

TEST(SchedulerTest, AJobThatNamesNoMemoryGetsWhatEnoughDevicesHave) {
  const std::vector<SchedulableWorker> workers = {MakeWorker("a", 2, 0, "", 500), MakeWorker("b", 1, 1, "job-1", 900)};
  EXPECT_EQ(MemoryForEachRank(workers, "cpu", 1), 900);
  EXPECT_EQ(MemoryForEachRank(workers, "cpu", 2), 900);  // one of them is in use, which will pass
  EXPECT_EQ(MemoryForEachRank(workers, "cpu", 3), 500);
  EXPECT_EQ(MemoryForEachRank(workers, "cpu", 5), 0);
  EXPECT_EQ(MemoryForEachRank(workers, "cuda", 1), 0);
  EXPECT_EQ(MemoryForEachRank(workers, "cpu", 0), 0);
}

}  // namespace
}  // namespace muster
