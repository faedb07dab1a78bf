// The checksum of files: CRC-32 as in gzip and PNG (polynomial 0xEDB88320), computed by zlib, so that `crc32 FILE`,
// Python's zlib.crc32 and every other tool can check a shard by hand. It finds torn and flipped bytes; it is no defence
// against malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// Of `bytes` following on from data whose checksum is `before` (0 at the start). Any thread.
uint32_t Crc32(absl::Span<const std::byte> bytes, uint32_t before = 0);

// Large files also have a checksum for each block of so many bytes, the last of which may be shorter: what is damaged
// can be told to the block, and who reads a part need not read the whole.
inline constexpr int64_t kChecksumBlockBytes = int64_t{4} << 20;

// Both checksums of a stream of bytes, in one pass. Thread-compatible.
class BlockChecksums {
 public:
  void Append(absl::Span<const std::byte> bytes);

  int64_t bytes() const { return bytes_; }
  uint32_t crc32() const;                      // of everything
  std::vector<uint32_t> block_crc32s() const;  // of each block

 private:
  int64_t bytes_ = 0;
  std::vector<uint32_t> full_blocks_;
  uint32_t full_blocks_crc32_ = 0;  // of all full blocks together
  uint32_t open_block_ = 0;         // of the bytes behind them
};

}  // namespace muster
