// Samples of a language model from indexed datasets: the tokens of a dataset, end to end, cut into windows of
// sequence_length tokens and the one that follows; window w starts at token w * sequence_length, so a window's last
// target is the next one's first token. Without packing window w is the beginning of document w instead, padded where
// the document is shorter.
//
// Targets that do not count: those of padding, tokens that the dataset's mask leaves out, and with a document mask the
// first token of a document, which follows from nothing before it.
//
// Immutable after Open; any thread may call, several at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/formats/token_dataset.h"
#include "worker/data/blend.h"
#include "worker/data/sample_source.h"

namespace muster {

enum class SampleOrder {
  // Training: endless. Each epoch of a dataset visits its complete windows once, in an order keyed by (seed, dataset,
  // epoch).
  kShuffled,
  // Validation: the windows of each dataset in turn, the incomplete last one padded with ignored targets; samples from
  // windows() on have no counted target at all, so that an evaluation keeps whole batches.
  kSequential,
};

struct WeightedDataset {
  std::string prefix;  // of PREFIX.bin and PREFIX.idx, or a token file of llm.c (token_dataset.h)
  // Share of the training samples, relative to the others; honoured to 1/4096. Unused by kSequential.
  double weight = 1;
};

struct GptSampleSourceOptions {
  std::vector<WeightedDataset> datasets;
  int64_t sequence_length = 0;  // tokens
  int64_t vocab = 0;            // of the model: a larger token is an error that names file and byte offset
  uint64_t seed = 0;            // of the shuffle
  SampleOrder order = SampleOrder::kShuffled;
  // Positions see, and predict, nothing of other documents. A sample's rows need document_starts then.
  bool document_mask = false;
  // Documents follow each other through the windows. False: one document a sample; what is longer is cut off.
  bool packing = true;

  // Tokens are compared with the vocabulary at open up to this many per dataset (1 GB/s: a second of start for the
  // default in two-byte tokens); later ones when they are read, so that nothing bad ever reaches the model.
  int64_t scan_tokens = int64_t{1} << 29;
};

class GptSampleSource : public SampleSource {
 public:
  // INVALID_ARGUMENT naming the option, or the errors of IndexedDataset::Open and CheckTokens. A dataset without a
  // single complete window (kShuffled), or without two tokens (kSequential), is INVALID_ARGUMENT saying how many tokens
  // it has and needs.
  static absl::StatusOr<std::unique_ptr<GptSampleSource>> Open(const GptSampleSourceOptions& options);

  int64_t sequence_length() const override { return options_.sequence_length; }
  absl::Status Sample(int64_t index, const SampleRows& row) const override;

  // Of all datasets together: one epoch when shuffled and weights follow sizes, the whole validation set when
  // sequential.
  int64_t windows() const { return windows_; }

 private:
  struct Corpus {
    std::unique_ptr<TokenDataset> dataset;
    int64_t windows = 0;
  };
  struct WindowAddress {
    size_t corpus = 0;
    int64_t window = 0;
  };

  GptSampleSource(GptSampleSourceOptions options, std::vector<Corpus> corpora, Blend blend);
  WindowAddress Shuffled(int64_t index) const;
  absl::Status ReadWindow(const WindowAddress& address, const SampleRows& row) const;
  absl::Status ReadTokens(const TokenDataset& dataset, int64_t first, int64_t end, const SampleRows& row) const;

  GptSampleSourceOptions options_;
  std::vector<Corpus> corpora_;
  Blend blend_;
  int64_t windows_ = 0;
};

}  // namespace muster
