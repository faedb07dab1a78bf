#include "common/plan/tensor_split.h"

#include "gtest/gtest.h"
#include "tests/common/plan/planner_oracle.h"

namespace muster {
namespace {

TEST(TensorSplitTest, OneRankHoldsTheWholeModel) {
  for (const nlohmann::json& row : PlannerOracle("parameter_counts").at("rows")) {
    const ModelShape shape = ShapeOfRow(row);
    EXPECT_EQ(ParametersOnTensorRank(shape, 1), ParameterCount(shape)) << row.at("name");
  }
}

TEST(TensorSplitTest, AllRanksTogetherHoldEachSplitParameterOnce) {
  const ModelShape shape = ShapeOfRow(RowNamed(PlannerOracle("parameter_counts"), "llama-3-8b"));
  for (const ParameterInfo& parameter : Parameters(shape)) {
    const int64_t copies = TensorSplitDimension(parameter) < 0 ? 8 : 1;
    EXPECT_EQ(8 * ElementsOnTensorRank(parameter, 8), copies * parameter.elements()) << parameter.name;
  }
}

TEST(TensorSplitTest, RowParallelBiasesAndNormsAreReplicated) {
  const ModelShape shape = ShapeOfRow(RowNamed(PlannerOracle("parameter_counts"), "gpt2-xl"));
  for (const ParameterInfo& parameter : Parameters(shape)) {
    const std::string& name = parameter.name;
    if (name == "layer.0.attention.qkv.bias" || name == "layer.0.ffn.up.bias") {
      EXPECT_EQ(TensorSplitDimension(parameter), 0) << name;
    } else if (name == "layer.0.attention.projection.weight" || name == "layer.0.ffn.down.weight") {
      EXPECT_EQ(TensorSplitDimension(parameter), 1) << name;
    } else if (parameter.dims.size() == 1 && name.find("layer.0.") == 0) {
      EXPECT_EQ(TensorSplitDimension(parameter), -1) << name;
    }
  }
}

}  // namespace
}  // namespace muster
