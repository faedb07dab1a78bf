#include "worker/data/gpt_sample_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/data/permutation.h"

namespace muster {
namespace {

absl::Status CheckOptions(const GptSampleSourceOptions& options) {
  if (options.datasets.empty()) return absl::InvalidArgumentError("no dataset was given");
  if (options.sequence_length < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence_length is ", options.sequence_length, ", expected at least 1"));
  }
  if (options.vocab < 1) {
    return absl::InvalidArgumentError(absl::StrCat("vocab is ", options.vocab, ", expected at least 1"));
  }
  return absl::OkStatus();
}

// A window needs the token after it as its last target, so n tokens hold (n - 1) / length complete windows.
absl::StatusOr<int64_t> CountWindows(const TokenDataset& dataset, const GptSampleSourceOptions& options) {
  const int64_t length = options.sequence_length;
  const bool whole = options.order == SampleOrder::kShuffled && options.packing;
  const int64_t needed = whole ? length + 1 : 2;
  if (dataset.tokens() < needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        dataset.tokens_path(), " has ", dataset.tokens(), " tokens; ",
        whole ? absl::StrCat("one sequence of ", length, " and its targets need ") : std::string("a sample needs "),
        needed));
  }
  if (!options.packing) return dataset.documents();
  const int64_t predicted = dataset.tokens() - 1;
  return whole ? predicted / length : (predicted + length - 1) / length;
}

// Of a row that begins at token `first` of the dataset: where each position's document begins, in the row; a target
// that is the first token of a document does not count.
void MaskDocuments(const TokenDataset& dataset, int64_t first, const SampleRows& row) {
  int64_t document = dataset.DocumentOf(first);
  int64_t end = dataset.DocumentBegin(document + 1);
  int32_t start = 0;
  for (size_t t = 0; t < row.tokens.size(); ++t) {
    const int64_t token = first + static_cast<int64_t>(t);
    while (token >= end && document + 1 < dataset.documents()) {
      end = dataset.DocumentBegin(++document + 1);
      start = static_cast<int32_t>(t);
    }
    row.document_starts[t] = start;
    if (token + 1 == end) row.targets[t] = kIgnoredSampleTarget;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<GptSampleSource>> GptSampleSource::Open(const GptSampleSourceOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckOptions(options));
  std::vector<double> weights;
  std::vector<Corpus> corpora;
  for (const WeightedDataset& weighted : options.datasets) {
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<TokenDataset> dataset,
                            OpenTokenDataset(weighted.prefix, options.document_mask || !options.packing));
    MUSTER_ASSIGN_OR_RETURN(const int64_t windows, CountWindows(*dataset, options));
    MUSTER_RETURN_IF_ERROR(dataset->CheckTokens(options.vocab, 0, std::min(dataset->tokens(), options.scan_tokens)));
    corpora.push_back({std::move(dataset), windows});
    weights.push_back(options.order == SampleOrder::kShuffled ? weighted.weight : 1.0);
  }
  MUSTER_ASSIGN_OR_RETURN(Blend blend, Blend::Make(weights));
  return std::unique_ptr<GptSampleSource>(new GptSampleSource(options, std::move(corpora), std::move(blend)));
}

GptSampleSource::GptSampleSource(GptSampleSourceOptions options, std::vector<Corpus> corpora, Blend blend)
    : options_(std::move(options)), corpora_(std::move(corpora)), blend_(std::move(blend)) {
  for (const Corpus& corpus : corpora_) windows_ += corpus.windows;
}

GptSampleSource::WindowAddress GptSampleSource::Shuffled(int64_t index) const {
  const Blend::Choice choice = blend_(index);
  const size_t corpus = static_cast<size_t>(choice.dataset);
  const int64_t windows = corpora_[corpus].windows;
  const Permutation order(windows, options_.seed, static_cast<uint64_t>(corpus),
                          static_cast<uint64_t>(choice.sample / windows));
  return {corpus, order(choice.sample % windows)};
}

absl::Status GptSampleSource::Sample(int64_t index, const SampleRows& row) const {
  MUSTER_CHECK(index >= 0, index);
  if (options_.order == SampleOrder::kShuffled) return ReadWindow(Shuffled(index), row);
  for (size_t corpus = 0; corpus < corpora_.size(); ++corpus) {
    if (index < corpora_[corpus].windows) return ReadWindow({corpus, index}, row);
    index -= corpora_[corpus].windows;
  }
  FillIgnored(row);
  return absl::OkStatus();
}

absl::Status GptSampleSource::ReadWindow(const WindowAddress& address, const SampleRows& row) const {
  const int64_t length = options_.sequence_length;
  MUSTER_CHECK(static_cast<int64_t>(row.tokens.size()) == length && row.targets.size() == row.tokens.size() &&
                   row.document_starts.size() == (options_.document_mask ? row.tokens.size() : 0),
               row.tokens.size(), " tokens, ", row.targets.size(), " targets, ", row.document_starts.size(),
               " document starts, length ", length);
  const TokenDataset& dataset = *corpora_[address.corpus].dataset;
  MUSTER_RETURN_IF_ERROR(dataset.CheckUnchanged());
  FillIgnored(row);
  if (options_.packing) {
    const int64_t first = address.window * length;
    MUSTER_RETURN_IF_ERROR(ReadTokens(dataset, first, dataset.tokens(), row));
    if (options_.document_mask) MaskDocuments(dataset, first, row);
    return absl::OkStatus();
  }
  return ReadTokens(dataset, dataset.DocumentBegin(address.window), dataset.DocumentBegin(address.window + 1), row);
}

// The tokens from `first` on, but not those from `end` on, into a row of padding.
absl::Status GptSampleSource::ReadTokens(const TokenDataset& dataset, int64_t first, int64_t end,
                                         const SampleRows& row) const {
  const int64_t predicted = std::clamp<int64_t>(end - 1 - first, 0, options_.sequence_length);
  if (first + predicted >= options_.scan_tokens) {
    MUSTER_RETURN_IF_ERROR(dataset.CheckTokens(options_.vocab, first, std::min(predicted + 1, end - first)));
  }
  const size_t count = static_cast<size_t>(predicted);
  dataset.Read(first, row.tokens.first(count));
  if (count == 0) return absl::OkStatus();
  dataset.Read(first + 1, row.targets.first(count));
  for (size_t t = 0; t < count; ++t) {
    if (!dataset.Counted(first + 1 + static_cast<int64_t>(t))) row.targets[t] = kIgnoredSampleTarget;
  }
  return absl::OkStatus();
}

}  // namespace muster
