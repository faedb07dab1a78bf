// A small job that is good, as a file. Tests break it in one place.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/base/check.h"

namespace muster {

inline std::string GoodJob() {
  return R"(name: good
model:
  family: gpt2
  layers: 2
  hidden: 64
  heads: 2
  vocab: 257
  context: 64
data:
  train: [{path: train}]
training:
  global_batch: 16
  micro_batch: 2
  sequence_length: 64
  steps: 4
  precision: bf16
  optimizer: {adamw: {lr: 1e-3}}
parallelism: {data: 2, pipeline: 2}
resources: {ranks: 4, memory_per_rank: 512MiB}
)";
}

// GoodJob with `old`, which is in it once, replaced.
inline std::string JobWith(absl::string_view old, absl::string_view replacement) {
  std::string text = GoodJob();
  const size_t at = text.find(old.data(), 0, old.size());
  MUSTER_CHECK(at != std::string::npos && text.find(old.data(), at + 1, old.size()) == std::string::npos, old);
  return text.replace(at, old.size(), replacement.data(), replacement.size());
}

}  // namespace muster
