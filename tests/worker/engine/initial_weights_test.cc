#include "worker/engine/initial_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace muster {
namespace {

ModelShape Shape() {
  return {.layers = 8, .hidden = 64, .heads = 4, .kv_heads = 4, .ffn = 256, .vocab = 300, .context = 32};
}

ParameterInfo Find(const std::string& name) {
  for (const ParameterInfo& parameter : Parameters(Shape())) {
    if (parameter.name == name) return parameter;
  }
  ADD_FAILURE() << name;
  return {};
}

std::vector<float> Whole(const std::string& name, uint64_t seed = 1) {
  const ParameterInfo parameter = Find(name);
  std::vector<float> values(static_cast<size_t>(parameter.elements()));
  InitialWeights(Shape(), seed, parameter, 0, absl::MakeSpan(values));
  return values;
}

double Deviation(const std::vector<float>& values) {
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const double mean = sum / static_cast<double>(values.size());
  return std::sqrt(squares / static_cast<double>(values.size()) - mean * mean);
}

TEST(InitialWeights, APieceEqualsThatPieceOfTheWhole) {
  const std::string name = "layer.3.ffn.up.weight";
  const std::vector<float> whole = Whole(name);
  std::vector<float> piece(100);
  InitialWeights(Shape(), 1, Find(name), 777, absl::MakeSpan(piece));
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 777));
}

TEST(InitialWeights, AreNormalWithGpt2sDeviations) {
  EXPECT_NEAR(Deviation(Whole("embedding.token.weight")), 0.02, 0.0005);
  EXPECT_NEAR(Deviation(Whole("layer.0.attention.qkv.weight")), 0.02, 0.0005);
  EXPECT_NEAR(Deviation(Whole("layer.0.attention.projection.weight")), 0.02 / 4, 0.0002);
  EXPECT_NEAR(Deviation(Whole("layer.0.ffn.down.weight")), 0.02 / 4, 0.0002);
  const std::vector<float> values = Whole("layer.0.ffn.up.weight");
  const auto outside = std::count_if(values.begin(), values.end(), [](float v) { return std::abs(v) > 0.04f; });
  EXPECT_NEAR(static_cast<double>(outside) / static_cast<double>(values.size()), 0.0455,
              0.006);  // beyond two deviations
}

TEST(InitialWeights, BeginBiasesAtZeroAndNormsAtOne) {
  for (const float value : Whole("layer.1.attention.norm.weight")) EXPECT_EQ(value, 1.0f);
  for (const float value : Whole("layer.1.attention.norm.bias")) EXPECT_EQ(value, 0.0f);
  for (const float value : Whole("layer.1.ffn.up.bias")) EXPECT_EQ(value, 0.0f);
}

TEST(InitialWeights, DifferBetweenSeedsAndTensors) {
  EXPECT_NE(Whole("layer.0.ffn.up.weight", 1), Whole("layer.0.ffn.up.weight", 2));
  EXPECT_NE(Whole("layer.0.ffn.up.weight"), Whole("layer.1.ffn.up.weight"));
}

}  // namespace
}  // namespace muster
