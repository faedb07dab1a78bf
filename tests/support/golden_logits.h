// What transformers computes of the tiny models' exported directories: tests/oracle/transformers_logits.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/model_shape.h"

namespace muster {

struct GoldenModel {
  std::string name;  // "gpt2": the key in the file
  ModelShape shape;  // with TinyWeights
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits;  // (tokens, vocabulary)
};

// Every model of the file. A file that cannot be read fails the test.
std::vector<GoldenModel> GoldenModels();

// The shape that a model of the file has.
std::vector<std::pair<std::string, ModelShape>> GoldenShapes();

}  // namespace muster
