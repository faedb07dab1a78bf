#include "common/formats/stored_floats.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/check.h"

namespace muster {
namespace {

float FloatOfBits(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t BitsOfFloat(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FromHalf(uint16_t half) {
  const float magnitude = [half] {
    const int exponent = half >> 10 & 0x1f;
    const int fraction = half & 0x3ff;
    if (exponent == 0) return std::ldexp(static_cast<float>(fraction), -24);
    if (exponent == 0x1f) return FloatOfBits(0x7f800000u | static_cast<uint32_t>(fraction) << 13);
    return std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
  }();
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

uint16_t ToHalf(float value) {
  const uint16_t sign = static_cast<uint16_t>(BitsOfFloat(value) >> 16 & 0x8000);
  if (std::isnan(value)) return sign | 0x7e00;
  const float magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (magnitude >= 65520) return sign | 0x7c00;  // halfway to what would be 65536
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // In units of the last place: 2^-24 below the smallest normal number. nearbyint rounds to nearest even.
  const int unit = std::max(exponent - 11, -24);
  const float rounded = std::nearbyint(std::ldexp(magnitude, -unit));
  const uint16_t fraction = static_cast<uint16_t>(rounded);
  // A carry out of the fraction is one more in the exponent, as the encoding has it.
  if (unit == -24) return sign | fraction;
  return static_cast<uint16_t>(sign | (((unit + 25) << 10) + fraction - 0x400));
}

uint16_t ToBFloat16(float value) {
  const uint32_t bits = BitsOfFloat(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename Stored, typename Widen>
void Load(const std::byte* data, int64_t first, int64_t stride, absl::Span<float> values, Widen widen) {
  const std::byte* at = data + first * static_cast<int64_t>(sizeof(Stored));
  for (float& value : values) {
    Stored stored;
    std::memcpy(&stored, at, sizeof(stored));  // the data may be unaligned
    value = widen(stored);
    at += stride * static_cast<int64_t>(sizeof(Stored));
  }
}

}  // namespace

bool IsStoredFloat(StoredType type) {
  return type == StoredType::kF32 || type == StoredType::kBF16 || type == StoredType::kF16;
}

void LoadFloats(StoredType type, absl::Span<const std::byte> data, int64_t first, int64_t stride,
                absl::Span<float> values) {
  MUSTER_CHECK(IsStoredFloat(type), "no floating-point type: ", StoredTypeName(type));
  if (type == StoredType::kF32) {
    Load<float>(data.data(), first, stride, values, [](float value) { return value; });
  } else if (type == StoredType::kBF16) {
    Load<uint16_t>(data.data(), first, stride, values,
                   [](uint16_t stored) { return FloatOfBits(static_cast<uint32_t>(stored) << 16); });
  } else {
    Load<uint16_t>(data.data(), first, stride, values, FromHalf);
  }
}

bool StoreFloats(StoredType type, absl::Span<const float> values, absl::Span<std::byte> data) {
  MUSTER_CHECK(IsStoredFloat(type), "no floating-point type: ", StoredTypeName(type));
  MUSTER_CHECK(data.size() == values.size() * static_cast<size_t>(StoredTypeBytes(type)), "the bytes do not fit");
  if (values.empty()) return true;
  if (type == StoredType::kF32) {
    std::memcpy(data.data(), values.data(), data.size());
    return true;
  }
  bool in_range = true;
  std::byte* at = data.data();
  for (const float value : values) {
    const uint16_t stored = type == StoredType::kBF16 ? ToBFloat16(value) : ToHalf(value);
    const uint16_t infinity = type == StoredType::kBF16 ? 0x7f80 : 0x7c00;
    if ((stored & 0x7fff) == infinity && std::isfinite(value)) in_range = false;
    std::memcpy(at, &stored, sizeof(stored));
    at += sizeof(stored);
  }
  return in_range;
}

}  // namespace muster
