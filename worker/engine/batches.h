// Token batches as the stage's micro-batches: of a training step from the prefetching loader, of a validation straight
// from its source. Stages between the first and the last read no data, and their micro-batches have no tokens; with a
// document mask every stage reads all of it.
//
// Owned by the trainer, for its thread.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/plan/layout.h"
#include "worker/data/prefetching_loader.h"
#include "worker/data/sample_source.h"
#include "worker/model/stage_memory.h"
#include "worker/model/unit.h"

namespace muster {

class TrainingBatches {
 public:
  struct Position {
    int64_t steps_done = 0;
    int64_t consumed_samples = 0;
    int64_t last_step = 0;  // nothing is loaded beyond it
  };

  // `replica` of layout.data. The source, clock and memory outlive the batches. INVALID_ARGUMENT when the source's
  // sequences are not layout.sequence_length long.
  static absl::StatusOr<TrainingBatches> Start(const SampleSource& source, const Clock& clock, const Layout& layout,
                                               int64_t replica, const Position& position, int64_t loader_threads,
                                               StageMemory& memory);

  // Waits for the next step's batch; the one before is gone.
  absl::Status Next();

  // Of this replica's share of the step; 0 on a stage that reads no data.
  int64_t counted_targets() const { return batch_.counted_targets; }

  // `loss_scale`: 1 / counted targets of the global batch.
  MicroBatch At(int64_t micro_batch, float loss_scale) const;

 private:
  TrainingBatches() = default;

  std::unique_ptr<PrefetchingLoader> loader_;  // null where the stage reads no data
  StepBatch batch_;
};

// Windows 0 .. windows-1 of the source, dealt to the replicas a micro-batch at a time; the last ones are filled up with
// positions that do not count, so that every micro-batch has the shape of training.
class ValidationBatches {
 public:
  // `source`, which outlives the batches, is null where nothing is validated: then there are no micro-batches.
  ValidationBatches(const SampleSource* source, const Layout& layout, int64_t replica, int64_t windows,
                    StageMemory& memory);

  int64_t micro_batches() const;  // of one replica, equal on every replica

  // Reads micro-batch i of this replica; the one before is gone.
  absl::StatusOr<MicroBatch> Read(int64_t micro_batch);

  // Of the micro-batch that was read last.
  int64_t counted_targets() const { return counted_targets_; }

 private:
  const SampleSource* const source_;
  const Layout layout_;
  const int64_t replica_;
  const int64_t windows_;
  SampleRows rows_;  // (micro_batch, sequence); empty where the stage reads no data
  int64_t counted_targets_ = 0;
};

}  // namespace muster
