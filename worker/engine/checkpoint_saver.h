// Saves checkpoints while training goes on: what a rank answers for is copied to host memory that the ledger lists, and
// a thread writes it to disk. Without such memory training stands still until the checkpoint is complete.
//
//   Start      every rank copies its blocks and begins to write its shard
//   Advance    when all ranks have written: rank 0 gets their records and begins to commit
//   Advance    when rank 0 has committed: the checkpoint exists, and every rank says so
//
// All ranks learn through the vote of a step (step_vote.h) that all are done(), so they go on in the same step and
// nobody waits. What fails on one rank has failed on all of them, and leaves nothing behind.
//
// Owned by the trainer, for its thread.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/checkpoint/checkpoint_writer.h"
#include "worker/comm/communicator.h"
#include "worker/engine/checkpointing.h"
#include "worker/engine/engine_config.h"
#include "worker/engine/observer.h"
#include "worker/engine/stage_parameters.h"
#include "worker/tensor/device.h"

namespace muster {

class CheckpointSaver {
 public:
  // `staging`: host memory for everything that the rank answers for; empty where there is none. All references outlive
  // the saver.
  CheckpointSaver(Communicator& world, const EngineConfig& config, Device& device, const Clock& clock,
                  const std::vector<StageParameter>& parameters, const Tensor& staging);
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // How a save has ended: equal status on every rank. `report` is filled in either case.
  struct Result {
    absl::Status status;
    CheckpointReport report;
  };

  // Whether a save may go on beside training. Otherwise call Finish after Start.
  bool asynchronous() const { return staging_.data != nullptr; }

  bool busy() const { return phase_ != Phase::kIdle; }

  // Whether this rank has nothing left to do before the next Advance.
  bool done() const { return done_.load(std::memory_order_acquire); }

  // Begins to save. Every rank calls it in the same step. REQUIRES: not busy.
  void Start(const TrainingPosition& position);

  // Every rank calls it in the same step, all of them done(). REQUIRES: busy. The result, when the save has ended.
  std::optional<Result> Advance();

  // Waits for the end of the save. Every rank calls it in the same step. REQUIRES: busy.
  Result Finish();

 private:
  enum class Phase { kIdle, kWriting, kCommitting };

  void CopyToStaging();
  void RunInBackground(std::function<absl::Status()> task);
  absl::Status Join();
  absl::Status BeginCommit(const absl::Status& written);

  Communicator& world_;
  const EngineConfig& config_;
  Device& device_;
  const Clock& clock_;
  const Tensor staging_;

  std::vector<LocalTensor> tensors_;  // what is written: in the staging memory, or where it lives
  std::vector<Tensor> sources_;       // where each of them is copied from

  Phase phase_ = Phase::kIdle;
  TrainingPosition position_;
  CheckpointReport report_;
  std::string record_;  // of this rank's shard; empty where it writes nothing

  std::thread thread_;
  absl::Status task_status_;  // of the thread, once it is joined
  absl::Duration task_time_;  // the same
  std::atomic<bool> done_{true};
};

}  // namespace muster
