// The checksum of files: CRC-32 as in gzip and PNG (polynomial 0xEDB88320), computed by zlib, so that `crc32 FILE`,
// Python's zlib.crc32 and every other tool can check a shard by hand. It finds torn and flipped bytes; it is no defence
// against malice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// Of `bytes` following on from data whose checksum is `before` (0 at the start). Any thread.
uint32_t Crc32(absl::Span<const std::byte> bytes, uint32_t before = 0);

}  // namespace muster
