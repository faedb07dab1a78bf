#include "worker/engine/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr double kDeviation = 0.02;

// The output function of SplitMix64 (Steele, Lea and Flood 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// FNV-1a: a hash of the name that no library may change.
uint64_t HashName(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

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
  const uint64_t key = Mix(seed ^ HashName(parameter.name));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(deviation * Normal(key, first_element + static_cast<int64_t>(i)));
  }
}

}  // namespace muster
