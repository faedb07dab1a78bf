// Token datasets in Megatron-LM's indexed format: PREFIX.bin holds the tokens, PREFIX.idx where each sequence and
// document lies. docs/data-format.md has the grammar. Read memory-mapped and fully validated at open; written so that a
// pair exists whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/file_writer.h"
#include "common/base/mapped_file.h"
#include "common/formats/loss_mask.h"
#include "common/formats/token_array.h"
#include "common/formats/token_dataset.h"

namespace muster {

// ---- the format's constants --------------------------------------------------------------------------------------

inline constexpr char kIndexMagic[] = "MMIDIDX\0";  // 9 bytes with the terminating zero
inline constexpr int64_t kIndexMagicBytes = 9;
inline constexpr uint64_t kIndexVersion = 1;
inline constexpr int64_t kIndexHeaderBytes = kIndexMagicBytes + 8 + 1 + 8 + 8;

// Codes of the index header. Tokens are uint8, int32 or uint16; the others are recognised so that an error can name
// them.
enum class TokenType : uint8_t {
  kUInt8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat64 = 6,
  kFloat32 = 7,
  kUInt16 = 8,
};
absl::string_view TokenTypeName(TokenType type);
int64_t TokenTypeBytes(TokenType type);
bool IsReadable(TokenType type);  // uint8, uint16, int32

// The smallest of the readable types that holds tokens 0 .. vocab-1.
TokenType SmallestTokenType(int64_t vocab);

std::string IndexPath(absl::string_view prefix);   // PREFIX.idx
std::string TokensPath(absl::string_view prefix);  // PREFIX.bin

// ---- reader ------------------------------------------------------------------------------------------------------

// Immutable after Open; any thread may read, several at once.
class IndexedDataset : public TokenDataset {
 public:
  // NOT_FOUND without a file, INVALID_ARGUMENT for anything wrong inside; the message names the file, the byte offset
  // and what to do.
  static absl::StatusOr<IndexedDataset> Open(const std::string& prefix);

  const std::string& tokens_path() const override { return bin_.path(); }
  const std::string& prefix() const { return prefix_; }
  TokenType type() const { return type_; }
  int64_t tokens() const override { return tokens_; }  // of all sequences, laid end to end
  int64_t sequences() const { return sequences_; }
  int64_t documents() const override { return documents_; }
  void Read(int64_t first, absl::Span<int32_t> out) const override;
  absl::Status CheckUnchanged() const override;
  int64_t DocumentBegin(int64_t document) const override;
  // False for the tokens that PREFIX.mask, where there is one, leaves out.
  bool Counted(int64_t token) const override { return !mask_.has_value() || mask_->Counted(token); }

  // Where a token lies in the .bin, in bytes: for error messages.
  int64_t ByteOffset(int64_t token) const { return token * TokenTypeBytes(type_); }

  int64_t SequenceLength(int64_t sequence) const;  // tokens. REQUIRES: 0 <= sequence < sequences()
  int64_t DocumentStart(int64_t document) const;   // its first sequence. REQUIRES: 0 <= document <= documents()

  absl::Status CheckTokens(int64_t vocab, int64_t first, int64_t count) const override;

 private:
  IndexedDataset(std::string prefix, MappedFile index, MappedFile tokens)
      : prefix_(std::move(prefix)), index_(std::move(index)), bin_(std::move(tokens)) {}
  absl::Status ParseHeader();
  absl::Status CheckSequences();
  absl::Status CheckDocuments() const;
  TokenArray array() const;

  std::string prefix_;
  MappedFile index_;
  MappedFile bin_;
  std::optional<LossMask> mask_;
  TokenType type_ = TokenType::kInt32;
  int64_t tokens_ = 0;
  int64_t sequences_ = 0;
  int64_t documents_ = 0;
};

// ---- writer ------------------------------------------------------------------------------------------------------

// Streams tokens to temporary names beside PREFIX; Finish() renames .bin, then .idx: a reader finds the index last.
// Without Finish() nothing is left. A pair already at PREFIX is replaced. Used by one thread.
class IndexedDatasetWriter {
 public:
  // REQUIRES: IsReadable(type). NOT_FOUND, naming the directory, when it does not exist.
  static absl::StatusOr<IndexedDatasetWriter> Create(const std::string& prefix, TokenType type);

  IndexedDatasetWriter(IndexedDatasetWriter&& other) noexcept = default;

  // Adds to the current sequence. INVALID_ARGUMENT when a token does not fit the type. Tokens that are not `counted`
  // are read by a model and not learnt; where there are any, PREFIX.mask is written too.
  absl::Status Append(absl::Span<const int32_t> tokens, bool counted = true);
  // Ends the current sequence, and with it the document. Each document is one sequence; an empty one is dropped.
  // INVALID_ARGUMENT when it has more than 2^31 - 1 tokens: the format's limit.
  absl::Status EndDocument();
  // fsyncs and renames. REQUIRES: no open sequence.
  absl::Status Finish();

  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return static_cast<int64_t>(lengths_.size()); }

 private:
  IndexedDatasetWriter(std::string prefix, TokenType type, FileWriter bin)
      : prefix_(std::move(prefix)), type_(type), bin_(std::move(bin)) {}
  absl::Status Flush();
  absl::Status WriteIndex();

  std::string prefix_;
  TokenType type_;
  FileWriter bin_;
  std::vector<std::byte> buffer_;  // tokens in the file's type, written out in runs
  std::vector<int32_t> lengths_;   // of the sequences done
  LossMaskWriter mask_;
  int64_t open_tokens_ = 0;  // of the current sequence
  int64_t tokens_ = 0;       // in all
};

}  // namespace muster
