#include "common/formats/tokenize_files.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/formats/indexed_dataset.h"

namespace muster {
namespace {

absl::string_view TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

absl::StatusOr<std::vector<MappedFile>> OpenInputs(const std::vector<std::string>& inputs) {
  if (inputs.empty()) return absl::InvalidArgumentError("no input files were given");
  std::vector<MappedFile> files;
  for (const std::string& path : inputs) {
    MUSTER_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
    if (file.size() == 0) return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
    file.AdviseSequential();
    files.push_back(std::move(file));
  }
  return files;
}

// Where the validation text begins: within one of the files, at the beginning of a line.
struct Cut {
  size_t file = 0;
  size_t byte = 0;
};

Cut FindCut(const std::vector<MappedFile>& files, double validation_fraction) {
  if (validation_fraction == 0) return {files.size(), 0};
  int64_t total = 0;
  for (const MappedFile& file : files) total += file.size();
  int64_t left = total - static_cast<int64_t>(static_cast<double>(total) * validation_fraction);
  for (size_t i = 0; i < files.size(); ++i) {
    if (left < files[i].size()) {
      const size_t newline = TextOf(files[i]).find('\n', static_cast<size_t>(left));
      if (newline == absl::string_view::npos) return {i + 1, 0};
      return {i, newline + 1};
    }
    left -= files[i].size();
  }
  return {files.size(), 0};
}

// Splits text at the separator and writes each part that is not empty as a document.
absl::Status WriteDocuments(absl::string_view text, const std::string& separator, const Tokenizer& tokenizer,
                            IndexedDatasetWriter& writer) {
  while (!text.empty()) {
    const size_t end = separator.empty() ? absl::string_view::npos : text.find(separator);
    const absl::string_view document = text.substr(0, end);
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + separator.size());
    if (document.empty()) continue;
    const auto append = [&writer](absl::Span<const int32_t> tokens) { return writer.Append(tokens); };
    MUSTER_RETURN_IF_ERROR(tokenizer.Encode(document, append));
    const int32_t end_of_document = tokenizer.end_of_document();
    MUSTER_RETURN_IF_ERROR(writer.Append(absl::MakeConstSpan(&end_of_document, 1)));
    MUSTER_RETURN_IF_ERROR(writer.EndDocument());
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const TokenizeOptions& options) {
  if (options.validation_fraction >= 0 && options.validation_fraction <= 0.5) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the validation fraction is ", options.validation_fraction, ", expected 0 to 0.5"));
}

absl::Status Finish(IndexedDatasetWriter& writer, const std::string& prefix, std::vector<TokenizedDataset>& done) {
  if (writer.tokens() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no text is left for ", prefix, ": the input is too short or has no line to cut at"));
  }
  MUSTER_RETURN_IF_ERROR(writer.Finish());
  done.push_back({prefix, writer.tokens(), writer.documents()});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TokenizedDataset>> TokenizeFiles(const std::vector<std::string>& inputs,
                                                            const Tokenizer& tokenizer,
                                                            const std::string& output_prefix,
                                                            const TokenizeOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckOptions(options));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<MappedFile> files, OpenInputs(inputs));
  const TokenType type = SmallestTokenType(tokenizer.vocab());
  const bool split = options.validation_fraction > 0;
  const std::string train_prefix = split ? output_prefix + "-train" : output_prefix;
  const std::string validation_prefix = output_prefix + "-val";

  MUSTER_ASSIGN_OR_RETURN(IndexedDatasetWriter train, IndexedDatasetWriter::Create(train_prefix, type));
  std::vector<IndexedDatasetWriter> validation;  // at most one
  if (split) {
    MUSTER_ASSIGN_OR_RETURN(IndexedDatasetWriter writer, IndexedDatasetWriter::Create(validation_prefix, type));
    validation.push_back(std::move(writer));
  }

  const Cut cut = FindCut(files, options.validation_fraction);
  for (size_t i = 0; i < files.size(); ++i) {
    const absl::string_view text = TextOf(files[i]);
    const size_t train_bytes = i < cut.file ? text.size() : i == cut.file ? cut.byte : 0;
    MUSTER_RETURN_IF_ERROR(WriteDocuments(text.substr(0, train_bytes), options.document_separator, tokenizer, train));
    if (!split) continue;
    MUSTER_RETURN_IF_ERROR(
        WriteDocuments(text.substr(train_bytes), options.document_separator, tokenizer, validation[0]));
  }

  // The validation set first: it is the one that can turn out empty, and nothing is in place yet then.
  std::vector<TokenizedDataset> done;
  if (split) MUSTER_RETURN_IF_ERROR(Finish(validation[0], validation_prefix, done));
  if (absl::Status status = Finish(train, train_prefix, done); !status.ok()) {
    if (split) {
      unlink(IndexPath(validation_prefix).c_str());
      unlink(TokensPath(validation_prefix).c_str());
    }
    return status;
  }
  std::reverse(done.begin(), done.end());
  return done;
}

}  // namespace muster
