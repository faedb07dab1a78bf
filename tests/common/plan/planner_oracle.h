// The published figures of tests/oracle/planner.json. Tests run with the source tree as working directory.
#pragma once

#include <fstream>
#include <string>

#include "common/base/check.h"
#include "common/plan/model_shape.h"
#include "nlohmann/json.hpp"

namespace muster {

inline nlohmann::json PlannerOracle(const std::string& table) {
  std::ifstream file("tests/oracle/planner.json");
  MUSTER_CHECK(file.good(), "tests/oracle/planner.json cannot be read; run the test in the source tree");
  return nlohmann::json::parse(file).at(table);
}

// A model as a row of parameter_counts writes it.
inline ModelShape ShapeOfRow(const nlohmann::json& row) {
  ModelShape shape;
  const bool gpt2 = row.at("family") == "gpt2";
  shape.family = gpt2 ? ModelFamily::kGpt2 : ModelFamily::kLlama;
  shape.layers = row.at("layers");
  shape.hidden = row.at("hidden");
  shape.heads = row.at("heads");
  shape.kv_heads = row.value("kv_heads", shape.heads);
  shape.ffn = row.value("ffn", 4 * shape.hidden);
  shape.vocab = row.at("vocab");
  shape.context = row.value("context", int64_t{8192});
  shape.tied = row.value("tied", true);
  shape.qkv_bias = gpt2;
  return shape;
}

inline nlohmann::json RowNamed(const nlohmann::json& table, const std::string& name) {
  for (const nlohmann::json& row : table.at("rows")) {
    if (row.at("name") == name) return row;
  }
  MUSTER_CHECK(false, "planner.json has no row named ", name);
  return {};
}

}  // namespace muster
