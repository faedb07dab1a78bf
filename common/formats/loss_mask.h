// PREFIX.mask beside a dataset: which of its tokens count when they are to be predicted. A fine-tuning dataset has one,
// so that prompts are read but not learnt (docs/data-format.md has the grammar).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/mapped_file.h"

namespace muster {

inline constexpr char kMaskMagic[] = "MUSTMASK";  // 8 bytes, without the terminating zero
inline constexpr uint64_t kMaskVersion = 1;
inline constexpr int64_t kMaskHeaderBytes = 8 + 8 + 8;

std::string MaskPath(absl::string_view prefix);  // PREFIX.mask

// Immutable after Open; any thread may read.
class LossMask {
 public:
  // INVALID_ARGUMENT naming file and byte of what is wrong, `tokens` being those of the dataset.
  static absl::StatusOr<LossMask> Open(const std::string& prefix, int64_t tokens);

  bool Counted(int64_t token) const {
    return (std::to_integer<int>(file_.bytes()[static_cast<size_t>(kMaskHeaderBytes + token / 8)]) >> (token % 8)) & 1;
  }
  absl::Status CheckUnchanged() const { return file_.CheckUnchanged(); }

 private:
  explicit LossMask(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
};

// Collects a mask in memory, an eighth of a byte a token from the first that does not count. Used by one thread.
class LossMaskWriter {
 public:
  void Append(int64_t tokens, bool counted);
  bool all_counted() const { return !any_uncounted_; }
  absl::Status Write(const std::string& prefix) const;

 private:
  int64_t tokens_ = 0;
  bool any_uncounted_ = false;
  std::vector<uint8_t> bits_;  // up to date once any_uncounted_
};

}  // namespace muster
