// The writing half of indexed_dataset.h.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/formats/indexed_dataset.h"

namespace muster {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;

template <typename T>
void Put(std::vector<std::byte>& out, T value) {
  const size_t at = out.size();
  out.resize(at + sizeof(T));
  std::memcpy(out.data() + at, &value, sizeof(T));
}

std::string Temporary(const std::string& path) { return absl::StrCat(path, ".tmp-", getpid()); }

int64_t LargestToken(TokenType type) {
  if (type == TokenType::kUInt8) return 255;
  return type == TokenType::kUInt16 ? 65535 : std::numeric_limits<int32_t>::max();
}

}  // namespace

absl::StatusOr<IndexedDatasetWriter> IndexedDatasetWriter::Create(const std::string& prefix, TokenType type) {
  MUSTER_CHECK(IsReadable(type), TokenTypeName(type));
  const std::string directory = DirectoryOf(prefix);
  if (!PathExists(directory)) {
    return absl::NotFoundError(
        absl::StrCat("the directory ", directory, " of ", TokensPath(prefix), " does not exist; make it first"));
  }
  MUSTER_ASSIGN_OR_RETURN(FileWriter bin, FileWriter::Create(Temporary(TokensPath(prefix))));
  return IndexedDatasetWriter(prefix, type, std::move(bin));
}

absl::Status IndexedDatasetWriter::Append(absl::Span<const int32_t> tokens, bool counted) {
  const int64_t largest = LargestToken(type_);
  for (int32_t token : tokens) {
    if (token < 0 || token > largest) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", token, " does not fit ", TokenTypeName(type_), " of ", bin_.path()));
    }
    if (type_ == TokenType::kUInt8) {
      Put(buffer_, static_cast<uint8_t>(token));
    } else if (type_ == TokenType::kUInt16) {
      Put(buffer_, static_cast<uint16_t>(token));
    } else {
      Put(buffer_, token);
    }
    if (buffer_.size() >= kBufferBytes) MUSTER_RETURN_IF_ERROR(Flush());
  }
  mask_.Append(static_cast<int64_t>(tokens.size()), counted);
  open_tokens_ += static_cast<int64_t>(tokens.size());
  tokens_ += static_cast<int64_t>(tokens.size());
  return absl::OkStatus();
}

absl::Status IndexedDatasetWriter::Flush() {
  MUSTER_RETURN_IF_ERROR(bin_.Append(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status IndexedDatasetWriter::EndDocument() {
  if (open_tokens_ > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("document ", documents(), " has ", open_tokens_,
                                                   " tokens, the format's limit is 2147483647; split it"));
  }
  if (open_tokens_ > 0) lengths_.push_back(static_cast<int32_t>(open_tokens_));
  open_tokens_ = 0;
  return absl::OkStatus();
}

absl::Status IndexedDatasetWriter::WriteIndex() {
  MUSTER_ASSIGN_OR_RETURN(FileWriter index, FileWriter::Create(Temporary(IndexPath(prefix_))));
  std::vector<std::byte> out;
  const auto flush_when = [&](size_t limit) {
    if (out.size() < limit) return absl::OkStatus();
    absl::Status status = index.Append(out);
    out.clear();
    return status;
  };
  for (int64_t i = 0; i < kIndexMagicBytes; ++i) Put(out, kIndexMagic[i]);
  Put(out, kIndexVersion);
  Put(out, static_cast<uint8_t>(type_));
  Put(out, static_cast<uint64_t>(lengths_.size()));
  Put(out, static_cast<uint64_t>(lengths_.size()) + 1);
  for (int32_t length : lengths_) {
    Put(out, length);
    MUSTER_RETURN_IF_ERROR(flush_when(kBufferBytes));
  }
  int64_t offset = 0;
  for (int32_t length : lengths_) {
    Put(out, offset);
    offset += length * TokenTypeBytes(type_);
    MUSTER_RETURN_IF_ERROR(flush_when(kBufferBytes));
  }
  for (int64_t document = 0; document <= documents(); ++document) {
    Put(out, document);
    MUSTER_RETURN_IF_ERROR(flush_when(kBufferBytes));
  }
  MUSTER_RETURN_IF_ERROR(flush_when(0));
  return index.Finish();
}

absl::Status IndexedDatasetWriter::Finish() {
  MUSTER_CHECK(open_tokens_ == 0, "a document is open");
  MUSTER_RETURN_IF_ERROR(Flush());
  MUSTER_RETURN_IF_ERROR(WriteIndex());
  const std::string new_index = Temporary(IndexPath(prefix_));
  if (absl::Status status = bin_.Finish(); !status.ok()) {
    unlink(new_index.c_str());
    return status;
  }
  // An older index goes first: at no moment does an index lie beside tokens that it does not describe.
  unlink(IndexPath(prefix_).c_str());
  unlink(MaskPath(prefix_).c_str());
  absl::Status status = mask_.all_counted() ? absl::OkStatus() : mask_.Write(prefix_);
  if (status.ok()) status = RenameDurably(bin_.path(), TokensPath(prefix_));
  if (status.ok()) status = RenameDurably(new_index, IndexPath(prefix_));
  if (!status.ok()) {
    unlink(bin_.path().c_str());
    unlink(new_index.c_str());
  }
  return status;
}

}  // namespace muster
