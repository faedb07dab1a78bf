#include "common/formats/loss_mask.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::Status Wrong(const std::string& path, int64_t offset, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": byte ", offset, ": ", problem));
}

}  // namespace

std::string MaskPath(absl::string_view prefix) { return absl::StrCat(prefix, ".mask"); }

absl::StatusOr<LossMask> LossMask::Open(const std::string& prefix, int64_t tokens) {
  MUSTER_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(MaskPath(prefix)));
  const std::string& path = file.path();
  if (file.size() < kMaskHeaderBytes) {
    return Wrong(path, file.size(), absl::StrCat("the file ends within its header of ", kMaskHeaderBytes, " bytes"));
  }
  if (std::memcmp(file.bytes().data(), kMaskMagic, 8) != 0) return Wrong(path, 0, "does not begin with MUSTMASK");
  uint64_t numbers[2] = {};
  std::memcpy(numbers, file.bytes().data() + 8, sizeof(numbers));
  if (numbers[0] != kMaskVersion) return Wrong(path, 8, absl::StrCat("version ", numbers[0], ", only 1 is known"));
  if (numbers[1] != static_cast<uint64_t>(tokens)) {
    return Wrong(path, 16,
                 absl::StrCat("it is of ", numbers[1], " tokens, the dataset has ", tokens,
                              ": it belongs to another; make the dataset again"));
  }
  const int64_t expected = kMaskHeaderBytes + (tokens + 7) / 8;
  if (file.size() != expected) {
    return Wrong(path, std::min(file.size(), expected),
                 absl::StrCat("the file has ", file.size(), " bytes, ", tokens, " tokens need ", expected));
  }
  return LossMask(std::move(file));
}

void LossMaskWriter::Append(int64_t tokens, bool counted) {
  if (!counted && !any_uncounted_) {
    any_uncounted_ = true;
    bits_.assign(static_cast<size_t>((tokens_ + 7) / 8), 0xFF);
    if (tokens_ % 8 != 0) bits_.back() = static_cast<uint8_t>((1 << (tokens_ % 8)) - 1);
  }
  for (int64_t i = tokens_; any_uncounted_ && i < tokens_ + tokens; ++i) {
    if (i % 8 == 0) bits_.push_back(0);
    if (counted) bits_.back() = static_cast<uint8_t>(bits_.back() | (1 << (i % 8)));
  }
  tokens_ += tokens;
}

absl::Status LossMaskWriter::Write(const std::string& prefix) const {
  std::string contents(kMaskMagic, 8);
  const uint64_t numbers[2] = {kMaskVersion, static_cast<uint64_t>(tokens_)};
  contents.append(reinterpret_cast<const char*>(numbers), sizeof(numbers));
  contents.append(bits_.begin(), bits_.end());
  return WriteFileDurably(MaskPath(prefix), contents);
}

}  // namespace muster
