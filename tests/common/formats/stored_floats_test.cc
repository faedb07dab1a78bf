#include "common/formats/stored_floats.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace muster {
namespace {

uint16_t Stored(StoredType type, float value) {
  std::byte bytes[2];
  StoreFloats(type, {&value, 1}, absl::MakeSpan(bytes));
  uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

TEST(StoredFloats, EveryNarrowNumberComesBackAsItWas) {
  for (const StoredType type : {StoredType::kF16, StoredType::kBF16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const uint16_t stored = static_cast<uint16_t>(bits);
      float value = 0;
      LoadFloats(type, {reinterpret_cast<const std::byte*>(&stored), 2}, 0, 1, {&value, 1});
      if (std::isnan(value)) continue;
      ASSERT_EQ(Stored(type, value), stored) << StoredTypeName(type);
    }
  }
}

TEST(StoredFloats, RoundToNearestEven) {
  EXPECT_EQ(Stored(StoredType::kF16, 1.0f + 0x1.0p-11f), 0x3c00) << "half a unit, down to even";
  EXPECT_EQ(Stored(StoredType::kF16, 1.0f + 0x3.0p-11f), 0x3c02) << "half a unit, up to even";
  EXPECT_EQ(Stored(StoredType::kF16, 2.0f - 0x1.0p-12f), 0x4000) << "a carry into the exponent";
  EXPECT_EQ(Stored(StoredType::kF16, 0x1.0p-25f), 0x0000) << "half of the smallest";
  EXPECT_EQ(Stored(StoredType::kF16, -0x1.8p-25f), 0x8001);
  EXPECT_EQ(Stored(StoredType::kBF16, 1.0f + 0x1.0p-8f), 0x3f80);
  EXPECT_EQ(Stored(StoredType::kBF16, 1.0f + 0x3.0p-8f), 0x3f82);
}

TEST(StoredFloats, SayWhenANumberIsTooLarge) {
  const float large = 65520;
  const float infinite = std::numeric_limits<float>::infinity();
  std::byte bytes[2];
  EXPECT_FALSE(StoreFloats(StoredType::kF16, {&large, 1}, absl::MakeSpan(bytes)));
  EXPECT_TRUE(StoreFloats(StoredType::kBF16, {&large, 1}, absl::MakeSpan(bytes)));
  EXPECT_TRUE(StoreFloats(StoredType::kF16, {&infinite, 1}, absl::MakeSpan(bytes)));
}

TEST(StoredFloats, AreReadWithAStride) {
  const float stored[] = {0, 1, 2, 3, 4, 5};
  float values[2];
  LoadFloats(StoredType::kF32, {reinterpret_cast<const std::byte*>(stored), sizeof(stored)}, 1, 3,
             absl::MakeSpan(values));
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 4);
}

}  // namespace
}  // namespace muster
