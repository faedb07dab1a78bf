// What a model of counts achieves on a text: the yardstick beside a validation loss. A model that beats the unigram has
// learnt frequencies, one that beats the bigram has learnt more than which token follows which.
//
// Counts are fitted on the training dataset and scored on the held-out one, over its tokens end to end, in nats per
// token:
//
//   p(x)     = (c(x) + 1) / (N + V)            add-one (Laplace); V: the highest token of both datasets, plus 1
//   p(x | w) = (c(w, x) + p(x)) / (c(w) + 1)   one pseudo-count spread as the unigram (MacKay and Peto 1995)
//
// so that a pair never seen costs what a sensible coder would pay and not infinity.
// Add-one over all pairs would overcharge rare contexts and make the bigram too easy to beat.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/formats/indexed_dataset.h"

namespace muster {

struct NgramEntropy {
  double unigram_nats = 0;  // H(x_t), per token
  double bigram_nats = 0;   // H(x_t | x_{t-1}), per token that has one before it
  int64_t train_tokens = 0;
  int64_t held_out_tokens = 0;
};

// INVALID_ARGUMENT when a dataset has fewer than two tokens or a negative one. Memory grows with the distinct
// tokens and pairs of the training text. Any thread.
absl::StatusOr<NgramEntropy> ScoreNgrams(const IndexedDataset& train, const IndexedDataset& held_out);

}  // namespace muster
