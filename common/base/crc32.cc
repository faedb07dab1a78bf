#include "common/base/crc32.h"

#include <zlib.h>

#include <algorithm>

namespace muster {

uint32_t Crc32(absl::Span<const std::byte> bytes, uint32_t before) {
  return static_cast<uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void BlockChecksums::Append(absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const int64_t room = kChecksumBlockBytes - bytes_ % kChecksumBlockBytes;
    const absl::Span<const std::byte> part = bytes.first(std::min(static_cast<size_t>(room), bytes.size()));
    open_block_ = Crc32(part, open_block_);
    bytes_ += static_cast<int64_t>(part.size());
    bytes.remove_prefix(part.size());
    if (bytes_ % kChecksumBlockBytes != 0) continue;
    full_blocks_crc32_ = static_cast<uint32_t>(
        crc32_combine(full_blocks_crc32_, open_block_, static_cast<z_off_t>(kChecksumBlockBytes)));
    full_blocks_.push_back(open_block_);
    open_block_ = 0;
  }
}

uint32_t BlockChecksums::crc32() const {
  return static_cast<uint32_t>(
      crc32_combine(full_blocks_crc32_, open_block_, static_cast<z_off_t>(bytes_ % kChecksumBlockBytes)));
}

std::vector<uint32_t> BlockChecksums::block_crc32s() const {
  std::vector<uint32_t> blocks = full_blocks_;
  if (bytes_ % kChecksumBlockBytes != 0) blocks.push_back(open_block_);
  return blocks;
}

}  // namespace muster
