// A whole job in one process, for debugging: the ranks are threads, no coordinator and no agent are needed, steps are
// printed.
//
// Owned by main; Run on one thread, RequestStop from any.
#pragma once

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
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

  // The process's exit code. Begins from the initial weights, as a new attempt of the checkpoint directory.
  int Run();

  // As RankRunner has it.
  bool RequestStop();

 private:
  struct RankResult {
    absl::StatusOr<TrainingOutcome> outcome = absl::UnknownError("not run");
    RankStage stage = RankStage::kBuild;  // where an error came
  };

  absl::Status Prepare();
  v1::Assignment AssignmentOf(int64_t rank) const;
  std::vector<RankResult> RunRanks();
  RankResult RunRank(int64_t rank, LocalCommunicator& world);

  const RankOptions options_;
  const Clock* const clock_;

  // Constant once prepared.
  v1::JobSpec spec_;  // resolved
  int64_t attempt_ = 1;
  DataSources data_;
  InitialModel initial_;

  absl::Mutex mutex_;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Trainer*> training_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
