// Token files of llm.c (its dev/data/data_common.py): a header of 256 int32, of which the first three are magic,
// version and number of tokens, then the tokens.
//
//   magic 20240520, version 1   uint16, GPT-2:    a document begins with token 50256, <|endoftext|>
//   magic 20240801, version 7   uint32, Llama 3:  a document begins with token 128000, <|begin_of_text|>
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mapped_file.h"
#include "common/formats/token_array.h"
#include "common/formats/token_dataset.h"

namespace muster {

class LlmcDataset : public TokenDataset {
 public:
  // NOT_FOUND without a file, INVALID_ARGUMENT naming file and byte for anything wrong inside. Without
  // `documents_wanted` the whole file is one document.
  static absl::StatusOr<LlmcDataset> Open(const std::string& path, bool documents_wanted);

  const std::string& tokens_path() const override { return file_.path(); }
  int64_t tokens() const override { return tokens_; }
  void Read(int64_t first, absl::Span<int32_t> out) const override;
  absl::Status CheckTokens(int64_t vocab, int64_t first, int64_t count) const override;
  absl::Status CheckUnchanged() const override { return file_.CheckUnchanged(); }
  int64_t documents() const override { return static_cast<int64_t>(begins_.size()) - 1; }
  int64_t DocumentBegin(int64_t document) const override { return begins_[static_cast<size_t>(document)]; }
  bool Counted(int64_t /*token*/) const override { return true; }

 private:
  explicit LlmcDataset(MappedFile file) : file_(std::move(file)) {}
  absl::Status ParseHeader();
  void FindDocuments();
  TokenArray array() const;

  MappedFile file_;
  TokenStorage storage_ = TokenStorage::kUInt16;
  int32_t first_of_document_ = 0;
  int64_t tokens_ = 0;
  std::vector<int64_t> begins_;  // of each document, and the end
};

}  // namespace muster
