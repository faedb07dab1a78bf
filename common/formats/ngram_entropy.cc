#include "common/formats/ngram_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Calls visit(token) for every token in order.
void ForEachToken(const IndexedDataset& dataset, absl::FunctionRef<void(int32_t)> visit) {
  std::vector<int32_t> run(16384);
  for (int64_t first = 0; first < dataset.tokens(); first += static_cast<int64_t>(run.size())) {
    const int64_t count = std::min(static_cast<int64_t>(run.size()), dataset.tokens() - first);
    dataset.Read(first, absl::MakeSpan(run).subspan(0, static_cast<size_t>(count)));
    for (int64_t i = 0; i < count; ++i) visit(run[static_cast<size_t>(i)]);
  }
}

uint64_t PairKey(int32_t before, int32_t token) {
  return static_cast<uint64_t>(before) << 32 | static_cast<uint32_t>(token);
}

class Counts {
 public:
  explicit Counts(int64_t vocab) : vocab_(vocab) {}

  void Add(const IndexedDataset& dataset) {
    int32_t before = -1;
    ForEachToken(dataset, [&](int32_t token) {
      ++unigram_[token];
      ++tokens_;
      if (before >= 0) {
        ++pairs_[PairKey(before, token)];
        ++context_[before];
      }
      before = token;
    });
  }

  double Probability(int32_t token) const {
    return (Count(unigram_, token) + 1) / (static_cast<double>(tokens_) + static_cast<double>(vocab_));
  }

  double Probability(int32_t token, int32_t before) const {
    return (Count(pairs_, PairKey(before, token)) + Probability(token)) / (Count(context_, before) + 1);
  }

 private:
  template <typename Key>
  static double Count(const absl::flat_hash_map<Key, int64_t>& counts, Key key) {
    const auto found = counts.find(key);
    return found == counts.end() ? 0 : static_cast<double>(found->second);
  }

  // Maps, as a dataset may hold few tokens of very high numbers.
  const int64_t vocab_;
  absl::flat_hash_map<int32_t, int64_t> unigram_;
  absl::flat_hash_map<int32_t, int64_t> context_;  // occurrences that another token follows
  absl::flat_hash_map<uint64_t, int64_t> pairs_;
  int64_t tokens_ = 0;
};

absl::StatusOr<int32_t> HighestToken(const IndexedDataset& dataset) {
  if (dataset.tokens() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(TokensPath(dataset.prefix()), " has ", dataset.tokens(), " tokens; entropies need two"));
  }
  MUSTER_RETURN_IF_ERROR(dataset.CheckTokens(std::numeric_limits<int32_t>::max(), 0, dataset.tokens()));
  int32_t highest = 0;
  ForEachToken(dataset, [&](int32_t token) { highest = std::max(highest, token); });
  return highest;
}

}  // namespace

absl::StatusOr<NgramEntropy> ScoreNgrams(const IndexedDataset& train, const IndexedDataset& held_out) {
  MUSTER_ASSIGN_OR_RETURN(const int32_t train_highest, HighestToken(train));
  MUSTER_ASSIGN_OR_RETURN(const int32_t held_out_highest, HighestToken(held_out));
  Counts counts(int64_t{1} + std::max(train_highest, held_out_highest));
  counts.Add(train);

  NgramEntropy entropy;
  entropy.train_tokens = train.tokens();
  entropy.held_out_tokens = held_out.tokens();
  int32_t before = -1;
  ForEachToken(held_out, [&](int32_t token) {
    entropy.unigram_nats -= std::log(counts.Probability(token));
    if (before >= 0) entropy.bigram_nats -= std::log(counts.Probability(token, before));
    before = token;
  });
  entropy.unigram_nats /= static_cast<double>(held_out.tokens());
  entropy.bigram_nats /= static_cast<double>(held_out.tokens() - 1);
  return entropy;
}

}  // namespace muster
