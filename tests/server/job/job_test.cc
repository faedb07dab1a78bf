#include "server/job/job.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "common/rpc/grpc_status.h"

namespace muster {
namespace {

constexpr JobEvent kEvents[] = {JobEvent::kPlaced,      JobEvent::kTraining, JobEvent::kFinished, JobEvent::kGangFailed,
                                JobEvent::kDevicesLost, JobEvent::kFailed,   JobEvent::kPause,    JobEvent::kResume,
                                JobEvent::kPreempt,     JobEvent::kCancel,   JobEvent::kGangDead, JobEvent::kTimedOut,
                                JobEvent::kExtended};

constexpr v1::JobState kStates[] = {v1::QUEUED,    v1::STARTING,  v1::RUNNING,    v1::RECOVERING,
                                    v1::PAUSING,   v1::PAUSED,    v1::PREEMPTING, v1::CANCELLING,
                                    v1::COMPLETED, v1::CANCELLED, v1::FAILED};

// The drawing of job.h, written a second time by hand: state -> event -> state.
const std::map<v1::JobState, std::map<JobEvent, v1::JobState>>& Drawing() {
  static const auto* const drawing = new std::map<v1::JobState, std::map<JobEvent, v1::JobState>>{
      {v1::QUEUED,
       {{JobEvent::kPlaced, v1::STARTING},
        {JobEvent::kPause, v1::PAUSED},
        {JobEvent::kCancel, v1::CANCELLED},
        {JobEvent::kFailed, v1::FAILED}}},
      {v1::STARTING,
       {{JobEvent::kTraining, v1::RUNNING},
        {JobEvent::kFinished, v1::COMPLETED},
        {JobEvent::kGangFailed, v1::RECOVERING},
        {JobEvent::kPause, v1::PAUSING},
        {JobEvent::kPreempt, v1::PREEMPTING},
        {JobEvent::kCancel, v1::CANCELLING},
        {JobEvent::kFailed, v1::FAILED}}},
      {v1::RUNNING,
       {{JobEvent::kFinished, v1::COMPLETED},
        {JobEvent::kGangFailed, v1::RECOVERING},
        {JobEvent::kPause, v1::PAUSING},
        {JobEvent::kPreempt, v1::PREEMPTING},
        {JobEvent::kCancel, v1::CANCELLING},
        {JobEvent::kFailed, v1::FAILED}}},
      {v1::RECOVERING,
       {{JobEvent::kPlaced, v1::STARTING},
        {JobEvent::kDevicesLost, v1::QUEUED},
        {JobEvent::kPause, v1::PAUSING},
        {JobEvent::kCancel, v1::CANCELLING},
        {JobEvent::kFailed, v1::FAILED}}},
      {v1::PAUSING,
       {{JobEvent::kGangDead, v1::PAUSED},
        {JobEvent::kTimedOut, v1::PAUSED},
        {JobEvent::kFinished, v1::COMPLETED},
        {JobEvent::kFailed, v1::FAILED},
        {JobEvent::kCancel, v1::CANCELLING}}},
      {v1::PAUSED, {{JobEvent::kResume, v1::QUEUED}, {JobEvent::kCancel, v1::CANCELLED}}},
      {v1::PREEMPTING,
       {{JobEvent::kGangDead, v1::QUEUED},
        {JobEvent::kTimedOut, v1::QUEUED},
        {JobEvent::kFinished, v1::COMPLETED},
        {JobEvent::kFailed, v1::FAILED},
        {JobEvent::kPause, v1::PAUSING},
        {JobEvent::kCancel, v1::CANCELLING}}},
      {v1::CANCELLING, {{JobEvent::kGangDead, v1::CANCELLED}, {JobEvent::kTimedOut, v1::CANCELLED}}},
      {v1::COMPLETED, {{JobEvent::kExtended, v1::QUEUED}}},
  };
  return *drawing;
}

class JobTransitionTest : public testing::TestWithParam<v1::JobState> {};

TEST_P(JobTransitionTest, TakesTheEventsOfTheDrawingAndNoOthers) {
  const v1::JobState from = GetParam();
  const auto row = Drawing().find(from);
  for (const JobEvent event : kEvents) {
    SCOPED_TRACE(JobEventName(event));
    const absl::StatusOr<v1::JobState> to = NextState(from, event);
    if (row != Drawing().end() && row->second.count(event) != 0) {
      ASSERT_TRUE(to.ok()) << to.status();
      EXPECT_EQ(*to, row->second.at(event));
      continue;
    }
    ASSERT_EQ(to.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ErrorInfoOf(to.status()).reason(), "ILLEGAL_STATE");
    EXPECT_EQ(ErrorInfoOf(to.status()).metadata().at("state"), StateName(from));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryState, JobTransitionTest, testing::ValuesIn(kStates),
                         [](const auto& info) { return StateName(info.param); });

TEST(JobTest, TransitionsAreNumberedInOrder) {
  int number = 0;
  for (const JobTransition& transition : JobTransitions()) EXPECT_EQ(transition.number, ++number);
}

TEST(JobTest, OnlyACompletedJobThatGetsMoreStepsLeavesAFinalState) {
  for (const JobTransition& transition : JobTransitions()) {
    const bool extended = transition.from == v1::COMPLETED && transition.event == JobEvent::kExtended;
    EXPECT_TRUE(extended || !IsFinal(transition.from)) << transition.number;
  }
}

TEST(JobTest, EveryStateCanReachAnEnd) {
  std::set<v1::JobState> ends = {v1::COMPLETED, v1::CANCELLED, v1::FAILED};
  for (size_t round = 0; round < std::size(kStates); ++round) {
    for (const JobTransition& transition : JobTransitions()) {
      if (ends.count(transition.to) != 0) ends.insert(transition.from);
    }
  }
  EXPECT_EQ(ends.size(), std::size(kStates));
}

TEST(JobTest, AJobHoldsDevicesFromItsPlacementUntilItsRanksAreGone) {
  for (const JobTransition& transition : JobTransitions()) {
    if (transition.event == JobEvent::kPlaced) {
      EXPECT_TRUE(HoldsDevices(transition.to)) << transition.number;
    }
    if (transition.event == JobEvent::kGangDead) {
      EXPECT_FALSE(HoldsDevices(transition.to)) << transition.number;
    }
  }
  EXPECT_TRUE(HoldsDevices(v1::RECOVERING)) << "a recovering job keeps its reservation";
}

}  // namespace
}  // namespace muster
