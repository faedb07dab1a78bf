#include "worker/engine/finite.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "common/base/check.h"

namespace muster {
namespace {

constexpr int64_t kPieceBytes = 16384;

// A float is NaN or infinite when all bits of its exponent are set.
template <typename Bits>
bool AllFinitePiece(const char* bytes, int64_t count, Bits exponent) {
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    if ((bits & exponent) == exponent) return false;
  }
  return true;
}

bool AllFinitePiece(DType dtype, const char* bytes, int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return AllFinitePiece<uint32_t>(bytes, count, 0x7f800000);
    case DType::kBF16:
      return AllFinitePiece<uint16_t>(bytes, count, 0x7f80);
    case DType::kF16:
      return AllFinitePiece<uint16_t>(bytes, count, 0x7c00);
    case DType::kI32:
    case DType::kU8:
      break;
  }
  MUSTER_CHECK(false, "integers are always finite");
  return true;
}

}  // namespace

bool AllFinite(Device& device, const Tensor& tensor) {
  std::array<char, kPieceBytes> piece;
  for (int64_t done = 0; done < tensor.bytes(); done += kPieceBytes) {
    const int64_t bytes = std::min(kPieceBytes, tensor.bytes() - done);
    device.CopyToHost(piece.data(), tensor.as<char>() + done, bytes);
    if (!AllFinitePiece(tensor.dtype, piece.data(), bytes / SizeOf(tensor.dtype))) return false;
  }
  return true;
}

}  // namespace muster
