// Runs a function once for each rank of a world whose ranks are threads of the test.
//
//   EXPECT_TRUE(AllOk(RunRanks(4, [](Communicator& world) { return Barrier(world); })));
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/comm/communicator.h"

namespace muster {

// Called on the rank's own thread. Tests may use EXPECT_ in it; a rank whose result is not OK takes the others down as
// a killed process would, so that none waits for it.
using RankBody = std::function<absl::Status(Communicator& world)>;

// What each rank returned, by rank. `deadline` is for one Wait: generous, because a test fails by its status long
// before.
std::vector<absl::Status> RunRanks(int size, const RankBody& body, absl::Duration deadline = absl::Seconds(60));

// Fails with the message of every rank that is not OK.
testing::AssertionResult AllOk(const std::vector<absl::Status>& statuses);

}  // namespace muster
