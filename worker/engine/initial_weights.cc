#include "worker/engine/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/match.h"
#include "common/base/hash.h"

namespace muster {
namespace {

constexpr double kDeviation = 0.02;

// The number that SplitMix64 gives in the state x.
uint64_t Mix(uint64_t x) { return MixBits(x + kSplitMixIncrement); }

// Uniform in (0, 1): 53 bits, never 0, so that its logarithm is finite.
double Uniform(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53; }

// Standard normal by Box and Muller.
double Normal(uint64_t key, int64_t element) {
  const uint64_t counter = 2 * static_cast<uint64_t>(element);
  const double radius = std::sqrt(-2 * std::log(Uniform(Mix(key ^ Mix(counter)))));
  return radius * std::cos(2 * std::numbers::pi * Uniform(Mix(key ^ Mix(counter + 1))));
}

}  // namespace

void InitialWeights(const ModelShape& shape, uint64_t seed, const ParameterInfo& parameter, int64_t first_element,
                    absl::Span<float> values) {
  if (parameter.dims.size() == 1) {
    std::fill(values.begin(), values.end(), absl::EndsWith(parameter.name, "norm.weight") ? 1.0f : 0.0f);
    return;
  }
  const bool writes_residual = absl::EndsWith(parameter.name, "attention.projection.weight") ||
                               absl::EndsWith(parameter.name, "ffn.down.weight");
  const double deviation =
      writes_residual ? kDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers)) : kDeviation;
  const uint64_t key = Mix(seed ^ HashText(parameter.name));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(deviation * Normal(key, first_element + static_cast<int64_t>(i)));
  }
}

}  // namespace muster
