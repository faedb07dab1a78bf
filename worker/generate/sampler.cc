#include "worker/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace muster {
namespace {

// Uniform in [0, 1), 53 bits.
double Uniform(uint64_t seed, int64_t position) {
  const uint64_t bits = MixBits(MixBits(seed + kSplitMixIncrement) ^ static_cast<uint64_t>(position));
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

// The tokens that may be drawn, likeliest first.
std::vector<int32_t> Candidates(absl::Span<const float> logits, int64_t count) {
  std::vector<int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto likelier = [logits](int32_t a, int32_t b) {
    const float left = logits[static_cast<size_t>(a)];
    const float right = logits[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  };
  const auto end = tokens.begin() + std::min(count, static_cast<int64_t>(tokens.size()));
  std::partial_sort(tokens.begin(), end, tokens.end(), likelier);
  tokens.erase(end, tokens.end());
  return tokens;
}

}  // namespace

int32_t SampleToken(absl::Span<const float> logits, const SamplerOptions& options, int64_t position) {
  MUSTER_CHECK(!logits.empty());
  const int64_t all = static_cast<int64_t>(logits.size());
  const bool greedy = options.temperature == 0;
  const std::vector<int32_t> tokens = Candidates(logits, greedy ? 1 : options.top_k > 0 ? options.top_k : all);
  if (greedy) return tokens.front();
  const double largest = logits[static_cast<size_t>(tokens.front())];
  std::vector<double> cumulative;
  double sum = 0;
  for (const int32_t token : tokens) {
    sum += std::exp((static_cast<double>(logits[static_cast<size_t>(token)]) - largest) / options.temperature);
    cumulative.push_back(sum);
  }
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end(), Uniform(options.seed, position) * sum);
  return tokens[static_cast<size_t>(std::min(drawn, cumulative.end() - 1) - cumulative.begin())];
}

}  // namespace muster
