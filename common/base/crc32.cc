#include "common/base/crc32.h"

#include <zlib.h>

namespace muster {

uint32_t Crc32(absl::Span<const std::byte> bytes, uint32_t before) {
  return static_cast<uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace muster
