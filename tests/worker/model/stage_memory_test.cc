#include "worker/model/stage_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "worker/tensor/cpu_device.h"

namespace muster {
namespace {

Ledger SmallLedger() {
  Ledger ledger;
  ledger.ticks = 4;
  const Lifetime whole = {0, 3};
  ledger.entries = {{"gradient/a", MemoryCategory::kGradients, MemorySpace::kDevice, 256, 1, whole},
                    {"saved/x", MemoryCategory::kActivations, MemorySpace::kDevice, 512, 2, {0, 1}},
                    {"gradient/b", MemoryCategory::kGradients, MemorySpace::kDevice, 256, 1, whole}};
  return ledger;
}

class StageMemoryTest : public testing::Test {
 protected:
  const std::unique_ptr<Device> device_ = MakeCpuDevice();
  StageMemory memory_ = *StageMemory::Allocate(*device_, SmallLedger());
};

TEST_F(StageMemoryTest, GivesEachSlotItsOwnBytes) {
  const Tensor first = memory_.Bind("saved/x", DType::kF32, {8, 16}, 0);
  const Tensor second = memory_.Bind("saved/x", DType::kF32, {8, 16}, 1);
  EXPECT_EQ(second.as<char>() - first.as<char>(), 512);
}

TEST_F(StageMemoryTest, CountsWhatIsBoundAndEachSlotOnce) {
  EXPECT_EQ(memory_.bound_bytes()[static_cast<size_t>(MemoryCategory::kActivations)], 0);
  memory_.Bind("saved/x", DType::kF32, {128}, 1);
  memory_.Bind("saved/x", DType::kBF16, {256}, 1);
  EXPECT_EQ(memory_.bound_bytes()[static_cast<size_t>(MemoryCategory::kActivations)], 512);
}

TEST_F(StageMemoryTest, KeepsSpacesApart) {
  Ledger ledger = SmallLedger();
  ledger.entries.push_back({"staging/host", MemoryCategory::kStaging, MemorySpace::kPinned, 1024, 1, {0, 3}});
  StageMemory memory = *StageMemory::Allocate(*device_, ledger);
  EXPECT_EQ(memory.arena_bytes(), memory_.arena_bytes()) << "the arena is device memory";
  std::memset(memory.BindBytes("staging/host").data, 1, 1024);
  EXPECT_EQ(memory.bound_bytes()[static_cast<size_t>(MemoryCategory::kStaging)], 1024);
  EXPECT_EQ(*memory.Bind("gradient/b", DType::kU8, {256}).as<char>(), 0);
}

using StageMemoryDeathTest = StageMemoryTest;

TEST_F(StageMemoryDeathTest, AbortsWhereATensorIsNotWhatWasPlanned) {
  EXPECT_DEATH(memory_.Bind("gradient/c", DType::kF32, {64}), "the ledger has no entry gradient/c");
  EXPECT_DEATH(memory_.Bind("gradient/a", DType::kF32, {65}), "gradient/a takes 260 bytes, planned were 256");
  EXPECT_DEATH(memory_.Bind("saved/x", DType::kF32, {128}, 2), "slot 2 of 2 of saved/x");
}

}  // namespace
}  // namespace muster
