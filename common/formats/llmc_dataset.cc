#include "common/formats/llmc_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr int64_t kHeaderBytes = 256 * 4;
constexpr int32_t kGpt2Magic = 20240520;
constexpr int32_t kGpt2Version = 1;
constexpr int32_t kGpt2FirstOfDocument = 50256;
constexpr int32_t kLlama3Magic = 20240801;
constexpr int32_t kLlama3Version = 7;
constexpr int32_t kLlama3FirstOfDocument = 128000;

absl::Status Wrong(const std::string& path, int64_t offset, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": byte ", offset, ": ", problem));
}

}  // namespace

absl::StatusOr<LlmcDataset> LlmcDataset::Open(const std::string& path, bool documents_wanted) {
  MUSTER_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  LlmcDataset dataset(std::move(file));
  MUSTER_RETURN_IF_ERROR(dataset.ParseHeader());
  dataset.begins_.push_back(0);
  if (documents_wanted) dataset.FindDocuments();
  if (dataset.tokens_ > 0) dataset.begins_.push_back(dataset.tokens_);
  return dataset;
}

absl::Status LlmcDataset::ParseHeader() {
  const std::string& path = file_.path();
  int32_t header[3] = {};
  const size_t readable = std::min(sizeof(header), file_.bytes().size());
  if (readable > 0) std::memcpy(header, file_.bytes().data(), readable);  // an empty file has no address
  if (header[0] != kGpt2Magic && header[0] != kLlama3Magic) {
    return Wrong(path, 0,
                 absl::StrCat("not a token file of llm.c, which begins with ", kGpt2Magic, " or ", kLlama3Magic,
                              "; of a Megatron dataset, name the prefix without .bin"));
  }
  if (file_.size() < kHeaderBytes) {
    return Wrong(path, file_.size(), absl::StrCat("the file ends within its header of ", kHeaderBytes, " bytes"));
  }
  const bool gpt2 = header[0] == kGpt2Magic;
  const int32_t version = gpt2 ? kGpt2Version : kLlama3Version;
  if (header[1] != version) {
    return Wrong(path, 4, absl::StrCat("version ", header[1], ", only ", version, " is known with this magic"));
  }
  if (header[2] < 0) return Wrong(path, 8, absl::StrCat("the number of tokens is ", header[2]));
  storage_ = gpt2 ? TokenStorage::kUInt16 : TokenStorage::kInt32;
  first_of_document_ = gpt2 ? kGpt2FirstOfDocument : kLlama3FirstOfDocument;
  tokens_ = header[2];
  const int64_t expected = array().ByteOffset(tokens_);
  if (file_.size() == expected) return absl::OkStatus();
  return Wrong(
      path, std::min(expected, file_.size()),
      absl::StrCat("the file has ", file_.size(), " bytes, its header describes ", expected, " (", tokens_, " tokens)",
                   file_.size() < expected ? ": it is truncated; copy or make it again"
                                           : ": it is still being written, or damaged"));
}

void LlmcDataset::FindDocuments() {
  std::vector<int32_t> run(65536);
  for (int64_t first = 0; first < tokens_; first += static_cast<int64_t>(run.size())) {
    const int64_t count = std::min(static_cast<int64_t>(run.size()), tokens_ - first);
    const absl::Span<int32_t> part = absl::MakeSpan(run).first(static_cast<size_t>(count));
    Read(first, part);
    for (int64_t i = 0; i < count; ++i) {
      if (part[static_cast<size_t>(i)] == first_of_document_ && first + i > 0) begins_.push_back(first + i);
    }
  }
}

TokenArray LlmcDataset::array() const { return {file_, kHeaderBytes, storage_}; }

void LlmcDataset::Read(int64_t first, absl::Span<int32_t> out) const {
  MUSTER_CHECK(first >= 0 && static_cast<int64_t>(out.size()) <= tokens_ - first, "tokens ", first, "+", out.size(),
               " of ", tokens_);
  array().Read(first, out);
}

absl::Status LlmcDataset::CheckTokens(int64_t vocab, int64_t first, int64_t count) const {
  return array().CheckTokens(vocab, first, count);
}

}  // namespace muster
