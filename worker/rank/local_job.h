// A whole job in one process, for debugging: the ranks are threads, no coordinator and no agent are needed, steps are
// printed.
//
// Owned by main; Run on one thread, RequestStop from any.
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/formats/checkpoint_paths.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"
#include "worker/comm/local_communicator.h"
#include "worker/engine/trainer.h"
#include "worker/rank/data_sources.h"
#include "worker/rank/exit_status.h"
#include "worker/rank/initial_model.h"
#include "worker/rank/options.h"

namespace muster {

class LocalJob {
 public:
  // The clock outlives this.
  LocalJob(const RankOptions& options, const Clock* clock) : options_(options), clock_(clock) {}

  // The process's exit code. A new attempt of the checkpoint directory, from the initial weights or, with
  // options.resume, from the newest checkpoint there that can be read. Rewinds as the job's policy says, a new attempt
  // each time.
  int Run();

  // As RankRunner has it.
  bool RequestStop();

 private:
  struct RankResult {
    absl::StatusOr<TrainingOutcome> outcome = absl::UnknownError("not run");
    RankStage stage = RankStage::kBuild;  // where an error came
    RewindPoint rewind;                   // when the outcome is kRewind
  };

  absl::Status Prepare();
  absl::Status FindOwnCheckpoints();
  // Trains as one attempt; the cause where it fails.
  RankResult RunAttempt();
  // The next attempt goes on from there; an error when the policy allows no more.
  absl::Status GoBack(const RewindPoint& rewind);
  void NoteCheckpoint(const CheckpointReport& report);
  v1::Assignment AssignmentOf(int64_t rank) const;
  std::vector<RankResult> RunRanks();
  RankResult RunRank(int64_t rank, const std::string& resume_from, LocalCommunicator& world);

  const RankOptions options_;
  const Clock* const clock_;

  // Constant once prepared.
  v1::JobSpec spec_;  // resolved
  DataSources data_;
  InitialModel initial_;
  std::string directory_;  // of the job's checkpoints

  // Constant while an attempt runs, but for the lineage, which belongs to rank 0.
  int64_t attempt_ = 1;
  std::vector<CheckpointId> lineage_;  // what led to where the run is, oldest first
  int64_t next_sample_ = 0;            // of an attempt behind a rewind
  int64_t rewinds_ = 0;

  absl::Mutex mutex_;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Trainer*> training_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
