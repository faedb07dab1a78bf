#include "common/base/crc32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster {
namespace {

std::vector<std::byte> Bytes(int64_t size) {
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
  return bytes;
}

TEST(BlockChecksums, AreThoseOfTheWholeAndOfEachBlockHoweverItArrives) {
  for (const int64_t size :
       {int64_t{0}, int64_t{1}, kChecksumBlockBytes - 1, kChecksumBlockBytes, 2 * kChecksumBlockBytes + 12345}) {
    const std::vector<std::byte> bytes = Bytes(size);
    for (const size_t piece : {size_t{1} << 20, size_t{999'999}, size_t{1} << 30}) {
      BlockChecksums checksums;
      for (size_t at = 0; at < bytes.size(); at += piece) {
        checksums.Append(absl::MakeSpan(bytes).subspan(at, piece));
      }
      EXPECT_EQ(checksums.bytes(), size);
      EXPECT_EQ(checksums.crc32(), Crc32(bytes)) << size;
      std::vector<uint32_t> blocks;
      for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(kChecksumBlockBytes)) {
        blocks.push_back(Crc32(absl::MakeSpan(bytes).subspan(at, static_cast<size_t>(kChecksumBlockBytes))));
      }
      EXPECT_EQ(checksums.block_crc32s(), blocks) << size;
    }
  }
}

}  // namespace
}  // namespace muster
