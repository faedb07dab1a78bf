// The manifest of a checkpoint: what was saved, when in the job's life, and which bytes of which shard hold which part
// of which logical tensor. docs/checkpoint-format.md describes the directory. Plain structs; no I/O; thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/formats/safetensors.h"
#include "common/plan/model_shape.h"

namespace muster {

inline constexpr int64_t kCheckpointFormatVersion = 2;
inline constexpr char kManifestFileName[] = "manifest.json";

// Of every logical parameter a checkpoint holds three tensors.
enum class StateKind : uint8_t { kMaster, kFirstMoment, kSecondMoment };
absl::string_view StateKindName(StateKind kind);  // "master", "first_moment", "second_moment"

// A box of a tensor in global coordinates: [offset, offset + dims) in each dimension.
struct Box {
  std::vector<int64_t> offset;
  std::vector<int64_t> dims;

  int64_t elements() const;
};
bool operator==(const Box& a, const Box& b);

// The common part of two boxes of one tensor; dims all 0 when there is none.
Box Intersect(const Box& a, const Box& b);

// The name of a box's tensor in its shard: "master/head.norm.bias" for the whole tensor, "master/head.norm.bias@128:64"
// (offset:dims, comma separated) for a part.
std::string ShardTensorName(StateKind kind, absl::string_view tensor, absl::Span<const int64_t> global_dims,
                            const Box& box);

struct StoredBox {
  int64_t file = 0;  // index into CheckpointManifest::files
  Box box;
};

struct CheckpointTensor {
  std::string name;  // logical, common/plan/model_shape.h
  StateKind kind = StateKind::kMaster;
  StoredType type = StoredType::kF32;
  std::vector<int64_t> dims;     // global
  std::vector<StoredBox> boxes;  // together the whole tensor, no element twice
};

struct CheckpointFile {
  std::string name;  // within the directory
  int64_t bytes = 0;
  uint32_t crc32 = 0;                  // of the whole file
  std::vector<uint32_t> block_crc32s;  // of each block of kChecksumBlockBytes, common/base/crc32.h
};

// Names a checkpoint of a job. Ordered by attempt, then step.
struct CheckpointId {
  int64_t attempt = 0;
  int64_t step = 0;  // optimizer steps done
};
bool operator==(const CheckpointId& a, const CheckpointId& b);
bool operator<(const CheckpointId& a, const CheckpointId& b);

// Dynamic loss scaling (fp16 only).
struct LossScalerState {
  double scale = 1;
  int64_t good_steps = 0;  // in a row, since the scale last grew
  int64_t hysteresis = 0;  // overflows until the scale falls; 0: with each
  bool fell_back = false;  // to bf16, for good
};

// What the trainer's policies remember of the steps before, so that a resumed run decides as it would have.
struct StepHistory {
  int64_t skipped_steps = 0;          // whose samples were consumed without an update, over the whole lineage
  std::vector<double> recent_losses;  // of the newest accepted steps, newest last
  int64_t spikes_in_a_row = 0;        // up to the newest step
};

struct CheckpointManifest {
  CheckpointId id;
  std::optional<CheckpointId> parent;  // where this attempt resumed from; none for a job's start
  std::string job_id;
  ModelShape model;              // whose parameters the tensors are
  std::string spec_json;         // the resolved job, opaque here
  int64_t consumed_samples = 0;  // of the training source, over the whole lineage
  std::optional<LossScalerState> loss_scaler;
  StepHistory history;
  std::map<std::string, std::string> numerics_fingerprint;
  std::vector<CheckpointFile> files;
  std::vector<CheckpointTensor> tensors;
};

// What one rank wrote: travels as bytes to rank 0, which merges the records of all ranks. `file` of every box is 0.
struct ShardRecord {
  CheckpointFile file;
  std::vector<CheckpointTensor> tensors;
};

std::string SerializeShardRecord(const ShardRecord& record);
absl::StatusOr<ShardRecord> ParseShardRecord(absl::string_view json, absl::string_view file);

std::string SerializeManifest(const CheckpointManifest& manifest);

// `file` is named in errors: "ckpt/attempt-1/step-20/manifest.json: tensors[3].boxes[0].dims: expected a list of
// integers". A newer format version, a tensor that its boxes do not cover exactly, a file index out of range: all
// INVALID_ARGUMENT.
absl::StatusOr<CheckpointManifest> ParseManifest(absl::string_view json, absl::string_view file);

// Adds the records' files and boxes, in the order given. INVALID_ARGUMENT when two records disagree about a tensor.
absl::Status MergeShardRecords(absl::Span<const ShardRecord> records, CheckpointManifest& manifest);

// Each tensor's boxes lie inside it and cover every element exactly once, each file index exists.
absl::Status CheckCoverage(const CheckpointManifest& manifest);

}  // namespace muster
