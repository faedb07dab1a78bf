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
absl::StatusOr<int64_t> CountWindows(const IndexedDataset& dataset, int64_t length, SampleOrder order) {
  const bool whole = order == SampleOrder::kShuffled;
  const int64_t needed = whole ? length + 1 : 2;
  if (dataset.tokens() < needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        TokensPath(dataset.prefix()), " has ", dataset.tokens(), " tokens; ",
        whole ? absl::StrCat("one sequence of ", length, " and its targets need ") : std::string("validation needs "),
        needed));
  }
  const int64_t predicted = dataset.tokens() - 1;
  return whole ? predicted / length : (predicted + length - 1) / length;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GptSampleSource>> GptSampleSource::Open(const GptSampleSourceOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckOptions(options));
  std::vector<double> weights;
  std::vector<Corpus> corpora;
  for (const WeightedDataset& weighted : options.datasets) {
    MUSTER_ASSIGN_OR_RETURN(IndexedDataset dataset, IndexedDataset::Open(weighted.prefix));
    MUSTER_ASSIGN_OR_RETURN(const int64_t windows, CountWindows(dataset, options.sequence_length, options.order));
    MUSTER_RETURN_IF_ERROR(dataset.CheckTokens(options.vocab, 0, std::min(dataset.tokens(), options.scan_tokens)));
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
  const auto [tokens, targets, document_starts] = row;
  const int64_t length = options_.sequence_length;
  MUSTER_CHECK(static_cast<int64_t>(tokens.size()) == length && static_cast<int64_t>(targets.size()) == length,
               tokens.size(), " tokens, ", targets.size(), " targets, length ", length);
  const IndexedDataset& dataset = corpora_[address.corpus].dataset;
  const int64_t first = address.window * length;
  const int64_t predicted = std::min(length, dataset.tokens() - 1 - first);  // positions that have a next token
  if (first + predicted >= options_.scan_tokens) {
    MUSTER_RETURN_IF_ERROR(dataset.CheckTokens(options_.vocab, first, predicted + 1));
  }
  const size_t count = static_cast<size_t>(predicted);
  dataset.Read(first, tokens.subspan(0, count));
  dataset.Read(first + 1, targets.subspan(0, count));
  std::fill(tokens.begin() + predicted, tokens.end(), 0);
  std::fill(targets.begin() + predicted, targets.end(), kIgnoredSampleTarget);
  std::fill(document_starts.begin(), document_starts.end(), 0);
  return absl::OkStatus();
}

}  // namespace muster
