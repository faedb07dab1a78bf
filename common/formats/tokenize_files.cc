#include "common/formats/tokenize_files.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/formats/indexed_dataset.h"
#include "common/formats/json_fields.h"

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

absl::Status AppendText(const Tokenizer& tokenizer, absl::string_view text, bool counted,
                        IndexedDatasetWriter& writer) {
  const auto append = [&](absl::Span<const int32_t> tokens) { return writer.Append(tokens, counted); };
  return tokenizer.Encode(text, append);
}

absl::Status EndDocument(const Tokenizer& tokenizer, IndexedDatasetWriter& writer) {
  const int32_t end_of_document = tokenizer.end_of_document();
  MUSTER_RETURN_IF_ERROR(writer.Append(absl::MakeConstSpan(&end_of_document, 1)));
  return writer.EndDocument();
}

// Splits text at the separator and writes each part that is not empty as a document.
absl::Status WriteDocuments(absl::string_view text, const std::string& separator, const Tokenizer& tokenizer,
                            IndexedDatasetWriter& writer) {
  while (!text.empty()) {
    const size_t end = separator.empty() ? absl::string_view::npos : text.find(separator);
    const absl::string_view document = text.substr(0, end);
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + separator.size());
    if (document.empty()) continue;
    MUSTER_RETURN_IF_ERROR(AppendText(tokenizer, document, true, writer));
    MUSTER_RETURN_IF_ERROR(EndDocument(tokenizer, writer));
  }
  return absl::OkStatus();
}

// One line of JSONL as a document.
absl::Status WriteLine(absl::string_view line, const std::string& place, const TokenizeOptions& options,
                       const Tokenizer& tokenizer, IndexedDatasetWriter& writer) {
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(line, place));
  const JsonField root(json, place, "");
  const auto text_of = [&root](const std::string& key) -> absl::StatusOr<std::string> {
    MUSTER_ASSIGN_OR_RETURN(const JsonField member, root.Member(key));
    return member.String();
  };
  if (options.prompt_field.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, text_of(options.text_field));
    if (text.empty()) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(AppendText(tokenizer, text, true, writer));
  } else {
    MUSTER_ASSIGN_OR_RETURN(const std::string prompt, text_of(options.prompt_field));
    MUSTER_ASSIGN_OR_RETURN(const std::string completion, text_of(options.completion_field));
    MUSTER_RETURN_IF_ERROR(AppendText(tokenizer, prompt, false, writer));
    MUSTER_RETURN_IF_ERROR(AppendText(tokenizer, completion, true, writer));
  }
  return EndDocument(tokenizer, writer);
}

// `lines_before`: of the file, before `text`.
absl::Status WriteLines(absl::string_view text, const std::string& path, int64_t lines_before,
                        const TokenizeOptions& options, const Tokenizer& tokenizer, IndexedDatasetWriter& writer) {
  for (int64_t number = lines_before + 1; !text.empty(); ++number) {
    const absl::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == absl::string_view::npos) continue;
    MUSTER_RETURN_IF_ERROR(WriteLine(line, absl::StrCat(path, ":", number), options, tokenizer, writer));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const TokenizeOptions& options) {
  if (options.prompt_field.empty() != options.completion_field.empty()) {
    return absl::InvalidArgumentError("a prompt field and a completion field go together");
  }
  if (!options.text_field.empty() && !options.prompt_field.empty()) {
    return absl::InvalidArgumentError("a text field and a prompt field exclude each other");
  }
  const bool lines = !options.text_field.empty() || !options.prompt_field.empty();
  if (lines && !options.document_separator.empty()) {
    return absl::InvalidArgumentError("a document separator is of plain text: a line of JSONL is one document");
  }
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
  const bool by_line = !options.text_field.empty() || !options.prompt_field.empty();
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
    const auto write = [&](absl::string_view part, int64_t lines_before, IndexedDatasetWriter& writer) {
      return by_line ? WriteLines(part, files[i].path(), lines_before, options, tokenizer, writer)
                     : WriteDocuments(part, options.document_separator, tokenizer, writer);
    };
    const absl::string_view train_text = text.substr(0, train_bytes);
    MUSTER_RETURN_IF_ERROR(files[i].CheckUnchanged());
    MUSTER_RETURN_IF_ERROR(write(train_text, 0, train));
    if (split) {
      const int64_t lines_before = std::count(train_text.begin(), train_text.end(), '\n');
      MUSTER_RETURN_IF_ERROR(write(text.substr(train_bytes), lines_before, validation[0]));
    }
    MUSTER_RETURN_IF_ERROR(files[i].CheckUnchanged());
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
  for (const TokenizedDataset& dataset : done) {
    MUSTER_RETURN_IF_ERROR(WriteTokenizer(tokenizer, TokenizerDirectory(dataset.prefix)));
  }
  return done;
}

}  // namespace muster
