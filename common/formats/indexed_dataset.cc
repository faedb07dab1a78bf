#include "common/formats/indexed_dataset.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

struct TypeInfo {
  TokenType type;
  absl::string_view name;
  int64_t bytes;
};

constexpr std::array<TypeInfo, 8> kTypes = {{{TokenType::kUInt8, "uint8", 1},
                                             {TokenType::kInt8, "int8", 1},
                                             {TokenType::kInt16, "int16", 2},
                                             {TokenType::kInt32, "int32", 4},
                                             {TokenType::kInt64, "int64", 8},
                                             {TokenType::kFloat64, "float64", 8},
                                             {TokenType::kFloat32, "float32", 4},
                                             {TokenType::kUInt16, "uint16", 2}}};

// Values are little-endian and not aligned: the header has 34 bytes.
template <typename T>
T Load(const MappedFile& file, int64_t offset) {
  T value;
  std::memcpy(&value, file.bytes().data() + offset, sizeof(T));
  return value;
}

absl::Status Wrong(const std::string& path, int64_t offset, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": byte ", offset, ": ", problem));
}

// Offset within the index of each part, for given counts.
struct IndexParts {
  int64_t lengths = kIndexHeaderBytes;
  int64_t offsets = 0;
  int64_t documents = 0;
  int64_t end = 0;
};

IndexParts PartsOf(int64_t sequences, int64_t document_entries) {
  IndexParts parts;
  parts.offsets = parts.lengths + 4 * sequences;
  parts.documents = parts.offsets + 8 * sequences;
  parts.end = parts.documents + 8 * document_entries;
  return parts;
}

}  // namespace

absl::string_view TokenTypeName(TokenType type) { return kTypes[static_cast<size_t>(type) - 1].name; }

int64_t TokenTypeBytes(TokenType type) { return kTypes[static_cast<size_t>(type) - 1].bytes; }

bool IsReadable(TokenType type) {
  return type == TokenType::kUInt8 || type == TokenType::kUInt16 || type == TokenType::kInt32;
}

TokenType SmallestTokenType(int64_t vocab) {
  if (vocab <= 256) return TokenType::kUInt8;
  return vocab <= 65536 ? TokenType::kUInt16 : TokenType::kInt32;
}

std::string IndexPath(absl::string_view prefix) { return absl::StrCat(prefix, ".idx"); }

std::string TokensPath(absl::string_view prefix) { return absl::StrCat(prefix, ".bin"); }

absl::StatusOr<IndexedDataset> IndexedDataset::Open(const std::string& prefix) {
  MUSTER_ASSIGN_OR_RETURN(MappedFile index, MappedFile::Open(IndexPath(prefix)));
  MUSTER_ASSIGN_OR_RETURN(MappedFile tokens, MappedFile::Open(TokensPath(prefix)));
  IndexedDataset dataset(prefix, std::move(index), std::move(tokens));
  MUSTER_RETURN_IF_ERROR(dataset.ParseHeader());
  MUSTER_RETURN_IF_ERROR(dataset.CheckSequences());
  MUSTER_RETURN_IF_ERROR(dataset.CheckDocuments());
  if (PathExists(MaskPath(prefix))) {
    MUSTER_ASSIGN_OR_RETURN(dataset.mask_, LossMask::Open(prefix, dataset.tokens_));
  }
  return dataset;
}

absl::Status IndexedDataset::ParseHeader() {
  const std::string& path = index_.path();
  const int64_t magic_bytes = std::min(index_.size(), kIndexMagicBytes);
  if (magic_bytes > 0 && std::memcmp(index_.bytes().data(), kIndexMagic, static_cast<size_t>(magic_bytes)) != 0) {
    return Wrong(
        path, 0,
        "does not begin with MMIDIDX: not an index of a Megatron dataset; make one with `muster data tokenize`");
  }
  if (index_.size() < kIndexHeaderBytes) {
    return Wrong(path, index_.size(),
                 absl::StrCat("the file ends within its header of ", kIndexHeaderBytes,
                              " bytes: it is truncated; copy or make it again"));
  }
  int64_t at = kIndexMagicBytes;
  const uint64_t version = Load<uint64_t>(index_, at);
  if (version != kIndexVersion) return Wrong(path, at, absl::StrCat("index version ", version, ", only 1 is known"));
  at += 8;
  const uint8_t code = Load<uint8_t>(index_, at);
  if (code < 1 || code > kTypes.size())
    return Wrong(path, at, absl::StrCat("dtype code ", code, " is not known (1 to 8 are)"));
  type_ = static_cast<TokenType>(code);
  if (!IsReadable(type_)) {
    return Wrong(
        path, at,
        absl::StrCat("tokens of type ", TokenTypeName(type_), " are not supported; uint8, uint16 and int32 are"));
  }
  at += 1;
  // Neither count can exceed the bytes of the file, so that nothing below overflows.
  const uint64_t sequences = Load<uint64_t>(index_, at);
  const uint64_t most = static_cast<uint64_t>(index_.size());
  if (sequences > most)
    return Wrong(
        path, at,
        absl::StrCat("sequence count ", sequences, " does not fit a file of ", most, " bytes: truncated or damaged"));
  at += 8;
  const uint64_t documents = Load<uint64_t>(index_, at);
  if (documents > most)
    return Wrong(
        path, at,
        absl::StrCat("document count ", documents, " does not fit a file of ", most, " bytes: truncated or damaged"));
  if (documents == 0) return Wrong(path, at, "document count 0; there is always one more than documents");
  sequences_ = static_cast<int64_t>(sequences);
  documents_ = static_cast<int64_t>(documents) - 1;

  const int64_t end = PartsOf(sequences_, documents_ + 1).end;
  if (index_.size() == end) return absl::OkStatus();
  return Wrong(path, std::min(end, index_.size()),
               absl::StrCat("the file has ", index_.size(), " bytes, its counts (", sequences_, " sequences, ",
                            documents_ + 1, " document indices) need ", end,
                            index_.size() < end ? ": it is truncated or still being written; copy or make it again"
                                                : ": it is damaged or from another writer"));
}

absl::Status IndexedDataset::CheckSequences() {
  const IndexParts parts = PartsOf(sequences_, documents_ + 1);
  const int64_t token_bytes = TokenTypeBytes(type_);
  int64_t next = 0;  // byte of the .bin at which the next sequence begins
  for (int64_t i = 0; i < sequences_; ++i) {
    const int32_t length = Load<int32_t>(index_, parts.lengths + 4 * i);
    if (length < 0) {
      return Wrong(index_.path(), parts.lengths + 4 * i, absl::StrCat("sequence ", i, " has length ", length));
    }
    const int64_t offset = Load<int64_t>(index_, parts.offsets + 8 * i);
    if (offset != next) {
      return Wrong(index_.path(), parts.offsets + 8 * i,
                   absl::StrCat("sequence ", i, " begins at byte ", offset, " of the .bin, expected ", next,
                                ": sequences lie one after another; make the index again"));
    }
    if (__builtin_add_overflow(next, length * token_bytes, &next)) {
      return Wrong(index_.path(), parts.lengths + 4 * i,
                   "the lengths up to here add up to more bytes than any file has");
    }
  }
  tokens_ = next / token_bytes;
  if (bin_.size() == next) return absl::OkStatus();
  return Wrong(bin_.path(), std::min(next, bin_.size()),
               absl::StrCat("the file has ", bin_.size(), " bytes, ", index_.path(), " describes ", next, " (", tokens_,
                            " tokens of ", TokenTypeName(type_), ")",
                            bin_.size() < next ? ": it is truncated; copy or make it again"
                                               : ": it is still being written, or belongs to another index"));
}

absl::Status IndexedDataset::CheckDocuments() const {
  const int64_t start = PartsOf(sequences_, documents_ + 1).documents;
  int64_t before = 0;
  for (int64_t i = 0; i <= documents_; ++i) {
    const int64_t sequence = Load<int64_t>(index_, start + 8 * i);
    const bool first_wrong = i == 0 && sequence != 0;
    const bool last_wrong = i == documents_ && sequence != sequences_;
    if (first_wrong || last_wrong || sequence < before || sequence > sequences_) {
      return Wrong(index_.path(), start + 8 * i,
                   absl::StrCat("document index ", i, " is ", sequence, ", expected ",
                                first_wrong  ? std::string("0")
                                : last_wrong ? absl::StrCat("the number of sequences, ", sequences_)
                                             : absl::StrCat("a value from ", before, " to ", sequences_)));
    }
    before = sequence;
  }
  return absl::OkStatus();
}

TokenArray IndexedDataset::array() const {
  if (type_ == TokenType::kUInt8) return {bin_, 0, TokenStorage::kUInt8};
  return {bin_, 0, type_ == TokenType::kUInt16 ? TokenStorage::kUInt16 : TokenStorage::kInt32};
}

void IndexedDataset::Read(int64_t first, absl::Span<int32_t> out) const {
  MUSTER_CHECK(first >= 0 && static_cast<int64_t>(out.size()) <= tokens_ - first, "tokens ", first, "+", out.size(),
               " of ", tokens_);
  array().Read(first, out);
}

absl::Status IndexedDataset::CheckUnchanged() const {
  MUSTER_RETURN_IF_ERROR(bin_.CheckUnchanged());
  MUSTER_RETURN_IF_ERROR(index_.CheckUnchanged());
  return mask_.has_value() ? mask_->CheckUnchanged() : absl::OkStatus();
}

int64_t IndexedDataset::DocumentBegin(int64_t document) const {
  const int64_t sequence = DocumentStart(document);
  if (sequence == sequences_) return tokens_;
  const IndexParts parts = PartsOf(sequences_, documents_ + 1);
  return Load<int64_t>(index_, parts.offsets + 8 * sequence) / TokenTypeBytes(type_);
}

int64_t IndexedDataset::SequenceLength(int64_t sequence) const {
  MUSTER_CHECK(sequence >= 0 && sequence < sequences_, "sequence ", sequence, " of ", sequences_);
  return Load<int32_t>(index_, PartsOf(sequences_, documents_ + 1).lengths + 4 * sequence);
}

int64_t IndexedDataset::DocumentStart(int64_t document) const {
  MUSTER_CHECK(document >= 0 && document <= documents_, "document ", document, " of ", documents_);
  return Load<int64_t>(index_, PartsOf(sequences_, documents_ + 1).documents + 8 * document);
}

absl::Status IndexedDataset::CheckTokens(int64_t vocab, int64_t first, int64_t count) const {
  return array().CheckTokens(vocab, first, count);
}

}  // namespace muster
