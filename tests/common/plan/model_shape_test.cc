#include "common/plan/model_shape.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/plan/planner_oracle.h"

namespace muster {
namespace {

TEST(ModelShapeTest, ParameterCountsArePublishedOnes) {
  const nlohmann::json table = PlannerOracle("parameter_counts");
  ASSERT_FALSE(table.at("rows").empty());
  for (const nlohmann::json& row : table.at("rows")) {
    EXPECT_EQ(ParameterCount(ShapeOfRow(row)), row.at("parameters").get<int64_t>()) << row.at("name");
  }
}

TEST(ModelShapeTest, ModelFlopsFollowTheLabelledConvention) {
  const nlohmann::json table = PlannerOracle("model_flops_per_token");
  const double tolerance = table.at("tolerance");
  for (const nlohmann::json& row : table.at("rows")) {
    const ModelShape shape = ShapeOfRow(RowNamed(PlannerOracle("parameter_counts"), row.at("name")));
    const double flops = ModelFlopsPerToken(shape, row.at("sequence"));
    EXPECT_NEAR(flops / row.at("flops_per_token").get<double>(), 1, tolerance);
    const double mfu =
        flops * row.at("tokens_per_second_per_gpu").get<double>() / (row.at("peak_tflops").get<double>() * 1e12);
    EXPECT_NEAR(mfu, row.at("mfu").get<double>(), 0.0005 + tolerance * mfu);  // printed to three digits
  }
}

ModelShape SmallGpt2() {
  ModelShape shape;
  shape.layers = 2;
  shape.hidden = 32;
  shape.heads = shape.kv_heads = 4;
  shape.ffn = 128;
  shape.vocab = 61;
  shape.context = 16;
  return shape;
}

TEST(ModelShapeTest, UnitsAreHalfLayersBetweenEmbeddingAndHead) {
  std::vector<std::string> names;
  for (const Unit& unit : Units(SmallGpt2())) {
    EXPECT_EQ(unit.index, static_cast<int64_t>(names.size()));
    names.push_back(unit.name());
  }
  EXPECT_THAT(names, testing::ElementsAre("embedding", "0.attention", "0.ffn", "1.attention", "1.ffn", "head"));
  EXPECT_EQ(SmallGpt2().units(), 6);
}

TEST(ModelShapeTest, ParametersAreListedOnceInTheOrderOfTheModel) {
  std::set<std::string> names;
  int64_t unit = 0;
  for (const ParameterInfo& parameter : Parameters(SmallGpt2())) {
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
    EXPECT_GE(parameter.unit, unit) << parameter.name;
    unit = parameter.unit;
  }
  EXPECT_EQ(names.count("head.weight"), 0u);
  ModelShape untied = SmallGpt2();
  untied.tied = false;
  EXPECT_EQ(Parameters(untied).back().name, "head.weight");
  EXPECT_EQ(ParameterCount(untied) - ParameterCount(SmallGpt2()), 61 * 32);
}

TEST(ModelShapeTest, OnlyMatricesDecay) {
  for (const ParameterInfo& parameter : Parameters(SmallGpt2())) {
    const bool bias_or_norm =
        parameter.name.find(".bias") != std::string::npos || parameter.name.find("norm") != std::string::npos;
    EXPECT_EQ(parameter.decay, !bias_or_norm) << parameter.name;
  }
}

TEST(ModelShapeTest, LlamaHasGroupedKeysAndOnlyTheBiasesAskedFor) {
  ModelShape shape = SmallGpt2();
  shape.family = ModelFamily::kLlama;
  shape.kv_heads = 2;
  shape.qkv_bias = true;
  std::vector<std::string> biases;
  for (const ParameterInfo& parameter : Parameters(shape)) {
    if (parameter.name.find(".bias") != std::string::npos) biases.push_back(parameter.name);
    if (parameter.name == "layer.0.attention.qkv.weight") {
      EXPECT_THAT(parameter.dims, testing::ElementsAre(32 + 2 * 16, 32));
    }
    if (parameter.name == "layer.0.ffn.gate_up.weight") {
      EXPECT_THAT(parameter.dims, testing::ElementsAre(256, 32));
    }
  }
  EXPECT_THAT(biases, testing::ElementsAre("layer.0.attention.qkv.bias", "layer.1.attention.qkv.bias"));
}

}  // namespace
}  // namespace muster
