#include "tests/support/tiny_checkpoint.h"

#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/formats/checkpoint_paths.h"
#include "gtest/gtest.h"
#include "worker/checkpoint/checkpoint_writer.h"

namespace muster {
namespace {

// Uniform in [-1, 1), a multiple of 2^-23.
float Uniform(uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1.0p-23f - 1.0f; }

// Rows [first, first + rows) of a parameter in the memory of `values`.
LocalTensor RowBlock(const ParameterInfo& parameter, StateKind kind, int64_t first, int64_t rows,
                     std::vector<float>& values) {
  LocalTensor tensor{.name = parameter.name,
                     .kind = kind,
                     .type = StoredType::kF32,
                     .global_dims = parameter.dims,
                     .box = {std::vector<int64_t>(parameter.dims.size(), 0), parameter.dims}};
  tensor.box.offset[0] = first;
  tensor.box.dims[0] = rows;
  const int64_t columns = parameter.elements() / parameter.dims[0];
  values.resize(static_cast<size_t>(rows * columns));
  EXPECT_TRUE(TinyWeights(parameter, first * columns, absl::MakeSpan(values)).ok());
  tensor.data = values.data();
  return tensor;
}

absl::StatusOr<ShardRecord> WriteRank(const std::string& root, const ModelShape& shape, const CheckpointId& id,
                                      int64_t rank, int64_t ranks) {
  const std::vector<ParameterInfo> parameters = Parameters(shape);
  std::vector<std::vector<float>> memory(3 * parameters.size());
  std::vector<LocalTensor> tensors;
  for (const ParameterInfo& parameter : parameters) {
    const int64_t first = parameter.dims[0] * rank / ranks;
    const int64_t rows = parameter.dims[0] * (rank + 1) / ranks - first;
    if (rows == 0) continue;
    for (const StateKind kind : {StateKind::kMaster, StateKind::kFirstMoment, StateKind::kSecondMoment}) {
      tensors.push_back(RowBlock(parameter, kind, first, rows, memory[tensors.size()]));
    }
  }
  return WriteShard(root, id, rank, tensors);
}

}  // namespace

ModelShape TinyGpt2(bool tied) {
  ModelShape shape;
  shape.layers = 2;
  shape.hidden = 32;
  shape.heads = shape.kv_heads = 4;
  shape.ffn = 128;
  shape.vocab = 61;
  shape.context = 16;
  shape.tied = tied;
  return shape;
}

ModelShape TinyLlama(bool tied, bool qkv_bias) {
  ModelShape shape = TinyGpt2(tied);
  shape.family = ModelFamily::kLlama;
  shape.kv_heads = 2;
  shape.ffn = 88;
  shape.qkv_bias = qkv_bias;
  shape.norm_eps = 1e-6;
  shape.rope_base = 5000;
  return shape;
}

absl::Status TinyWeights(const ParameterInfo& parameter, int64_t first_element, absl::Span<float> values) {
  const uint64_t key = HashText(parameter.name);
  const bool matrix = parameter.dims.size() == 2;
  const float center = absl::EndsWith(parameter.name, "norm.weight") ? 1.0f : 0.0f;
  const float width = matrix ? 0.25f : 0.125f;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t element = static_cast<uint64_t>(first_element) + i;
    values[i] = center + width * Uniform(MixBits(key ^ MixBits(element + kSplitMixIncrement)));
  }
  return absl::OkStatus();
}

std::string WriteTinyCheckpoint(const std::string& root, const ModelShape& shape, int64_t step, int64_t ranks) {
  const CheckpointId id{1, step};
  std::vector<ShardRecord> records;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    absl::StatusOr<ShardRecord> record = WriteRank(root, shape, id, rank, ranks);
    EXPECT_TRUE(record.ok()) << record.status();
    if (record.ok()) records.push_back(*std::move(record));
  }
  CheckpointManifest manifest;
  manifest.id = id;
  manifest.job_id = "job-1";
  manifest.model = shape;
  manifest.spec_json = absl::StrCat("{", "}");
  const absl::Status committed = Commit(root, std::move(manifest), records);
  EXPECT_TRUE(committed.ok()) << committed;
  return CheckpointDirectory(root, id);
}

}  // namespace muster
