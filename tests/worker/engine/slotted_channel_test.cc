#include "worker/engine/slotted_channel.h"

#include <gtest/gtest.h>

#include <array>

#include "common/base/status_macros.h"
#include "tests/support/rank_harness.h"

namespace muster {
namespace {

TEST(SlottedChannel, CarriesMoreMicroBatchesThanItHasSlots) {
  constexpr int64_t kMicroBatches = 7;
  EXPECT_TRUE(AllOk(RunRanks(2, [](Communicator& world) -> absl::Status {
    std::array<int32_t, 2> values{};
    const std::vector<Tensor> slots = {Tensor(&values[0], DType::kI32, {1}), Tensor(&values[1], DType::kI32, {1})};
    const bool sends = world.rank() == 0;
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> group, world.Split({0, 1}, "edge"));
    SlottedChannel channel(std::move(group), sends ? Transfer::Direction::kSend : Transfer::Direction::kReceive, slots);
    for (int64_t i = 0; i < kMicroBatches; ++i) {
      int32_t& value = values[static_cast<size_t>(i % 2)];
      if (sends) {
        MUSTER_RETURN_IF_ERROR(channel.Wait(i));  // the slot's send before
        value = static_cast<int32_t>(100 + i);
        MUSTER_RETURN_IF_ERROR(channel.Start(i));
      } else {
        MUSTER_RETURN_IF_ERROR(channel.Start(i));
        MUSTER_RETURN_IF_ERROR(channel.Wait(i));
        EXPECT_EQ(value, 100 + i);
      }
    }
    return channel.WaitAll();
  })));
}

TEST(SlottedChannel, WaitsForNothingWhereNothingWasStarted) {
  EXPECT_TRUE(AllOk(RunRanks(2, [](Communicator& world) -> absl::Status {
    int32_t value = 0;
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> group, world.Split({0, 1}, "edge"));
    SlottedChannel channel(std::move(group), Transfer::Direction::kReceive, {Tensor(&value, DType::kI32, {1})});
    MUSTER_RETURN_IF_ERROR(channel.Wait(3));
    return channel.WaitAll();
  })));
}

}  // namespace
}  // namespace muster
