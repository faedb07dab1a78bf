#include "common/plan/published_formulas.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "common/plan/parameter_shard.h"
#include "common/plan/unit_cost.h"
#include "gtest/gtest.h"
#include "tests/common/plan/planner_oracle.h"

namespace muster {
namespace {

// A row of a table with named columns.
std::map<std::string, nlohmann::json> Named(const nlohmann::json& table, const nlohmann::json& row) {
  std::map<std::string, nlohmann::json> named;
  for (size_t i = 0; i < row.size(); ++i) named[table.at("columns").at(i)] = row.at(i);
  return named;
}

// Equal to the digits that a table prints, or within 0.01 relative.
void ExpectPrinted(double computed, double printed, double last_digit, const std::string& what) {
  const double tolerance = std::max(last_digit / 2, 0.01 * printed);
  EXPECT_NEAR(computed, printed, tolerance * (1 + 1e-12)) << what;
}

ModelShape Gpt(int64_t layers, int64_t hidden, int64_t heads, int64_t vocab, int64_t context) {
  return ShapeOfRow({{"family", "gpt2"},
                     {"layers", layers},
                     {"hidden", hidden},
                     {"heads", heads},
                     {"vocab", vocab},
                     {"context", context}});
}

TEST(PublishedFormulasTest, Sc21TableOne) {
  const nlohmann::json table = PlannerOracle("megatron_sc21_table_1");
  ASSERT_EQ(table.at("rows").size(), 6u);
  for (const nlohmann::json& cells : table.at("rows")) {
    auto row = Named(table, cells);
    const double billions = row["parameters_billion"];
    const Sc21Model model{row["layers"], row["hidden"]};
    ExpectPrinted(Sc21Parameters(model) / 1e9, billions, 0.1, "parameters");
    const double tflops = row["tflops_per_gpu"];
    ExpectPrinted(100 * tflops / 312, row["percent_of_peak"], 1, "percent of peak");
    ExpectPrinted(tflops * row["gpus"].get<double>() / 1000, row["aggregate_pflops"], 0.1, "aggregate");

    // The exact count has a last norm that the formula leaves out.
    const ModelShape shape = Gpt(model.layers, model.hidden, row["heads"], model.vocab, model.sequence);
    EXPECT_NEAR(Sc21Parameters(model), static_cast<double>(ParameterCount(shape) - 2 * shape.hidden),
                1e-12 * billions * 1e9);
  }
}

TEST(PublishedFormulasTest, Sc21FlopsAreTheUnitCostsWithFullRecomputation) {
  const nlohmann::json table = PlannerOracle("megatron_sc21_table_1");
  for (const nlohmann::json& cells : table.at("rows")) {
    auto row = Named(table, cells);
    const Sc21Model model{row["layers"], row["hidden"]};
    const int64_t batch = row["global_batch"];
    const ModelShape shape = Gpt(model.layers, model.hidden, row["heads"], model.vocab, model.sequence);
    double per_token = 0;
    for (const Unit& unit : Units(shape)) {
      const double passes = unit.kind == UnitKind::kHead ? 3 : 4;  // forward, again forward in a layer, backward twice
      per_token += passes * UnitForwardFlopsPerToken(shape, unit, model.sequence);
    }
    const double expected = per_token * static_cast<double>(batch * model.sequence);
    EXPECT_NEAR(Sc21FlopsPerIteration(model, batch) / expected, 1, 1e-12);
  }
}

TEST(PublishedFormulasTest, Sc21TrainingTime) {
  const nlohmann::json row = PlannerOracle("megatron_sc21_table_1").at("training_time");
  const double seconds = Sc21TrainingSeconds(row.at("parameters"), row.at("tokens"), row.at("gpus"),
                                             row.at("tflops_per_gpu").get<double>() * 1e12);
  ExpectPrinted(seconds / 86400, row.at("days"), 1, "days");
}

TEST(PublishedFormulasTest, KorthikantiActivationMemory) {
  const nlohmann::json table = PlannerOracle("korthikanti_activation_memory");
  const std::map<std::string, KorthikantiTechnique> techniques = {
      {"none", KorthikantiTechnique::kNone},
      {"tensor_only", KorthikantiTechnique::kTensor},
      {"tensor_sequence", KorthikantiTechnique::kTensorSequence},
      {"tensor_selective", KorthikantiTechnique::kTensorSelective},
      {"tensor_sequence_selective", KorthikantiTechnique::kTensorSequenceSelective},
      {"full", KorthikantiTechnique::kFull}};
  const double tolerance = table.at("tolerance");
  for (const nlohmann::json& cells : table.at("rows")) {
    auto row = Named(table, cells);
    const KorthikantiLayer layer{row["sequence"], row["micro_batch"], row["hidden"], row["heads"], row["tensor"]};
    for (const auto& technique : techniques) {
      const double printed = row[technique.first];
      const double gib =
          row["layers"].get<double>() * KorthikantiBytesPerLayer(layer, technique.second) / std::exp2(30);
      // Figures are printed to one decimal.
      EXPECT_NEAR(gib, printed, std::max(0.05, tolerance * printed)) << row["model"] << " " << technique.first;
    }
  }
  EXPECT_DOUBLE_EQ(KorthikantiInterleavingFactor(8, 2), 1 + 7.0 / 16);
  EXPECT_DOUBLE_EQ(KorthikantiInterleavingFactor(1, 1), 1);
}

TEST(PublishedFormulasTest, ZeroModelStates) {
  const nlohmann::json table = PlannerOracle("zero_model_states");
  const double tolerance = table.at("tolerance");
  for (const nlohmann::json& cells : table.at("rows")) {
    auto row = Named(table, cells);
    const double parameters = row["parameters_billion"].get<double>() * 1e9;
    const std::vector<std::string> stages = {"baseline", "optimizer", "optimizer_gradients", "all"};
    for (int stage = 0; stage < 4; ++stage) {
      const double gigabytes =
          parameters * ZeroBytesPerParameter(ZeroMixedPrecision(), stage, row["data_parallel"]) / 1e9;
      const double printed = row[stages[stage]];
      EXPECT_NEAR(gigabytes / printed, 1, tolerance) << stages[stage];
    }
  }
}

TEST(PublishedFormulasTest, BytesPerParameterRecipes) {
  const std::map<std::string, BytesPerParameter> recipes = {{"megatron mixed precision", MegatronMixedPrecision()},
                                                            {"zero paper mixed precision", ZeroMixedPrecision()}};
  const nlohmann::json table = PlannerOracle("bytes_per_parameter_recipes");
  ASSERT_FALSE(table.at("rows").empty());
  for (const nlohmann::json& row : table.at("rows")) {
    const BytesPerParameter recipe = recipes.at(row.at("recipe"));
    EXPECT_EQ(recipe.unsharded(), row.at("unsharded").get<double>());
    double fixed = 0;
    double sharded = 0;
    const std::string formula = row.at("optimizer_sharded");
    ASSERT_EQ(std::sscanf(formula.c_str(), "%lf + %lf/data_parallel", &fixed, &sharded), 2) << formula;
    for (int64_t data : {1, 4, 64}) {
      EXPECT_EQ(recipe.optimizer_sharded(data), fixed + sharded / static_cast<double>(data));
    }
  }
}

TEST(PublishedFormulasTest, MeasuredMegatronRun) {
  const nlohmann::json run = PlannerOracle("measured_memory_megatron");
  ModelShape shape = Gpt(32, 4096, 32, 131584, 8192);
  shape.kv_heads = 8;
  shape.ffn = 16384;
  shape.tied = false;
  const int64_t parameters = ParametersOnTensorRank(shape, run.at("layout").at("tensor"));
  EXPECT_EQ(parameters, run.at("parameters_on_rank").get<int64_t>());

  // 12 bytes per parameter in all, 4 of them moments.
  const BytesPerParameter recipe{2, 4, 2, 2};
  const double moments = 2 * recipe.moment * static_cast<double>(parameters);
  EXPECT_NEAR(moments / run.at("optimizer_moments_bytes_measured").get<double>(), 1,
              run.at("tolerance").at("optimizer_moments").get<double>());
  EXPECT_NEAR(recipe.unsharded() * static_cast<double>(parameters) /
                  run.at("static_bytes_at_12_per_parameter_measured").get<double>(),
              1, run.at("tolerance").at("static").get<double>());
}

}  // namespace
}  // namespace muster
