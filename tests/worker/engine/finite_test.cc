#include "worker/engine/finite.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "worker/tensor/cpu_device.h"

namespace muster {
namespace {

TEST(AllFinite, FindsOneBadFloatWhereverItIs) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  std::vector<float> values(10'000, std::numeric_limits<float>::max());
  const Tensor tensor(values.data(), DType::kF32, {10'000});
  EXPECT_TRUE(AllFinite(*device, tensor));
  for (const size_t place : {size_t{0}, size_t{4096}, values.size() - 1}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      const float before = values[place];
      values[place] = bad;
      EXPECT_FALSE(AllFinite(*device, tensor)) << bad << " at " << place;
      values[place] = before;
    }
  }
}

TEST(AllFinite, KnowsTheNarrowTypes) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  std::vector<uint16_t> bits = {0x3f80, 0x7f7f, 0xff7f};  // 1, largest and smallest as bf16
  EXPECT_TRUE(AllFinite(*device, Tensor(bits.data(), DType::kBF16, {3})));
  bits[1] = 0x7f80;  // infinity
  EXPECT_FALSE(AllFinite(*device, Tensor(bits.data(), DType::kBF16, {3})));
  bits = {0x3c00, 0x7bff, 0xfe00};  // 1, largest, NaN as f16
  EXPECT_TRUE(AllFinite(*device, Tensor(bits.data(), DType::kF16, {2})));
  EXPECT_FALSE(AllFinite(*device, Tensor(bits.data(), DType::kF16, {3})));
}

}  // namespace
}  // namespace muster
