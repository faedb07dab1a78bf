#include "tests/support/golden_logits.h"

#include <fstream>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/tiny_checkpoint.h"

namespace muster {

std::vector<std::pair<std::string, ModelShape>> GoldenShapes() {
  return {{"gpt2", TinyGpt2()},
          {"gpt2-untied", TinyGpt2(false)},
          {"llama", TinyLlama()},
          {"llama-tied", TinyLlama(true)},
          {"qwen2", TinyLlama(false, true)},
          {"qwen2-tied", TinyLlama(true, true)}};
}

std::vector<GoldenModel> GoldenModels() {
  std::vector<GoldenModel> models;
  const nlohmann::json json = nlohmann::json::parse(std::ifstream("tests/oracle/transformers_logits.json"), nullptr,
                                                    /*allow_exceptions=*/false);
  for (const auto& [name, shape] : GoldenShapes()) {
    if (!json.is_object() || json.count(name) == 0) {
      ADD_FAILURE() << "tests/oracle/transformers_logits.json has no " << name;
      continue;
    }
    models.push_back({name, shape, json[name]["tokens"].get<std::vector<int32_t>>(),
                      json[name]["logits"].get<std::vector<std::vector<float>>>()});
  }
  return models;
}

}  // namespace muster
