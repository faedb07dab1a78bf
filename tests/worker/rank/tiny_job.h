// A job that trains in less than a second, with its data: what the tests of muster-rank run.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/formats/indexed_dataset.h"
#include "common/spec/job_file.h"
#include "common/spec/resolve.h"
#include "tests/support/temporary_directory.h"

namespace muster {

inline constexpr int32_t kTinyVocab = 32;

// Tokens that follow a simple rule, so that a loss can fall.
inline void WriteTinyData(const std::string& prefix, int64_t tokens) {
  auto writer = IndexedDatasetWriter::Create(prefix, SmallestTokenType(kTinyVocab));
  MUSTER_CHECK(writer.ok(), std::string(writer.status().message()));
  std::vector<int32_t> text;
  for (int64_t i = 0; i < tokens; ++i) text.push_back(static_cast<int32_t>(i * 7 % kTinyVocab));
  MUSTER_CHECK(writer->Append(text).ok() && writer->EndDocument().ok() && writer->Finish().ok());
}

// YAML of a job of `data` x `pipeline` ranks; its data is written below `directory`.
inline std::string TinyJob(const TemporaryDirectory& directory, int64_t data, int64_t pipeline, int64_t steps = 8) {
  WriteTinyData(directory.File("train"), 4000);
  WriteTinyData(directory.File("val"), 200);
  return absl::StrCat(
      "name: tiny\n"
      "model: {family: gpt2, layers: 2, hidden: 16, heads: 2, vocab: 32, context: 16}\n"
      "data: {train: [{path: train}], validation: [{path: val}]}\n"
      "training: {global_batch: 8, micro_batch: 2, sequence_length: 16, steps: ",
      steps, ", precision: fp32, optimizer: {adamw: {lr: 1e-2}}}\n", "parallelism: {data: ", data,
      ", pipeline: ", pipeline, "}\n", "resources: {ranks: ", data * pipeline, "}\n",
      "checkpoint: {directory: ckpt, every_steps: 4}\n");
}

inline v1::JobSpec ResolvedTinyJob(const std::string& yaml) {
  const auto file = ParseJobFile("tiny.yaml", yaml);
  MUSTER_CHECK(file.ok(), std::string(file.status().message()));
  const ResolvedJob resolved = ResolveSpec(file->spec, {});
  MUSTER_CHECK(resolved.plan.feasible, file->Describe(resolved.plan.problems));
  return resolved.spec;
}

}  // namespace muster
