#include "worker/tensor/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/tensor/cpu_device.h"

namespace muster {
namespace {

// A device of a given size, which counts what is allocated.
class SmallDevice final : public Device {
 public:
  explicit SmallDevice(int64_t capacity_bytes) : real_(MakeCpuDevice()), capacity_bytes_(capacity_bytes) {}

  absl::StatusOr<void*> Allocate(MemorySpace space, int64_t bytes) override {
    if (bytes > capacity_bytes_) return absl::ResourceExhaustedError(absl::StrCat(bytes, " bytes refused"));
    ++blocks;
    return real_->Allocate(space, bytes);
  }
  void Free(MemorySpace space, void* block, int64_t bytes) override {
    --blocks;
    real_->Free(space, block, bytes);
  }
  void CopyToDevice(void* device, const void* host, int64_t bytes) override {
    real_->CopyToDevice(device, host, bytes);
  }
  void CopyToHost(void* host, const void* device, int64_t bytes) override { real_->CopyToHost(host, device, bytes); }
  absl::Status Synchronize() override { return real_->Synchronize(); }
  void BeginRange(const char*) override {}
  void EndRange() override {}

  int blocks = 0;

 private:
  std::unique_ptr<Device> real_;
  const int64_t capacity_bytes_;
};

TEST(ArenaTest, IsOneZeroedAlignedBlock) {
  SmallDevice device(1 << 20);
  Arena arena = Arena::Create(device, MemorySpace::kDevice, 1 << 20).value();
  EXPECT_EQ(device.blocks, 1);
  const Tensor all = arena.Bind(0, DType::kU8, {1 << 20});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(all.data) % kArenaAlignment, 0u);
  const std::string bytes(all.as<char>(), 1 << 20);
  EXPECT_EQ(bytes.find_first_not_of('\0'), std::string::npos);
}

TEST(ArenaTest, BindsAtTheOffsetWithTheShape) {
  SmallDevice device(1 << 20);
  Arena arena = Arena::Create(device, MemorySpace::kDevice, 4096).value();
  const Tensor base = arena.Bind(0, DType::kU8, {1});
  const Tensor tensor = arena.Bind(512, DType::kBF16, {3, 5, 7});
  EXPECT_EQ(tensor.as<char>() - base.as<char>(), 512);
  EXPECT_EQ(tensor.rank, 3);
  EXPECT_EQ(tensor.rows(), 15);
  EXPECT_EQ(tensor.cols(), 7);
  EXPECT_EQ(tensor.row_stride, 7);
  EXPECT_EQ(tensor.bytes(), 210);
}

TEST(ArenaTest, UsedBytesReachTheHighestTensorInWholeAlignments) {
  SmallDevice device(1 << 20);
  Arena arena = Arena::Create(device, MemorySpace::kDevice, 1024).value();
  EXPECT_EQ(arena.used_bytes(), 0);
  arena.Bind(256, DType::kF32, {65});  // 260 bytes
  EXPECT_EQ(arena.used_bytes(), 768);
  arena.Bind(0, DType::kF32, {1});
  EXPECT_EQ(arena.used_bytes(), 768);
  arena.Bind(768, DType::kU8, {256});
  EXPECT_EQ(arena.used_bytes(), arena.bytes());
}

TEST(ArenaTest, GivesTheBlockBackOnceHoweverItIsMoved) {
  SmallDevice device(1 << 20);
  {
    Arena first = Arena::Create(device, MemorySpace::kDevice, 1024).value();
    Arena second = std::move(first);
    Arena third = Arena::Create(device, MemorySpace::kHost, 2048).value();
    EXPECT_EQ(device.blocks, 2);
    third = std::move(second);
    EXPECT_EQ(device.blocks, 1);
    EXPECT_EQ(third.bytes(), 1024);
    EXPECT_EQ(third.space(), MemorySpace::kDevice);
  }
  EXPECT_EQ(device.blocks, 0);
}

TEST(ArenaTest, OfNoBytesAllocatesNothing) {
  SmallDevice device(1 << 20);
  const Arena arena = Arena::Create(device, MemorySpace::kPinned, 0).value();
  EXPECT_EQ(arena.bytes(), 0);
  EXPECT_EQ(device.blocks, 0);
}

TEST(ArenaTest, PassesOnThatTheDeviceIsTooSmall) {
  SmallDevice device(1000);
  const absl::StatusOr<Arena> arena = Arena::Create(device, MemorySpace::kDevice, 1024);
  EXPECT_EQ(arena.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(device.blocks, 0);
}

TEST(ArenaDeathTest, RefusesATensorThatDoesNotFit) {
  SmallDevice device(1 << 20);
  Arena arena = Arena::Create(device, MemorySpace::kDevice, 1024).value();
  EXPECT_DEATH(arena.Bind(768, DType::kF32, {65}), "ends at byte 1028 of an arena of 1024");
  EXPECT_DEATH(arena.Bind(2, DType::kF32, {1}), "offset 2");
}

TEST(CpuDeviceTest, RefusesMoreThanTheAddressSpaceHolds) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  const absl::StatusOr<void*> block = device->Allocate(MemorySpace::kDevice, int64_t{1} << 56);
  EXPECT_EQ(block.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(block.status().message()), testing::HasSubstr("72057594037927936 bytes"));
}

TEST(CpuDeviceTest, CopiesBothWays) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  Arena arena = Arena::Create(*device, MemorySpace::kDevice, 256).value();
  const Tensor tensor = arena.Bind(0, DType::kF32, {4});
  const float sent[4] = {1, 2, 3, 4};
  float received[4] = {};
  device->CopyToDevice(tensor.data, sent, sizeof(sent));
  device->CopyToHost(received, tensor.data, sizeof(received));
  EXPECT_EQ(std::memcmp(sent, received, sizeof(sent)), 0);
  EXPECT_TRUE(device->Synchronize().ok());
}

}  // namespace
}  // namespace muster
