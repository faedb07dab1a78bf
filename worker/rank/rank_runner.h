// One rank of one attempt, from its assignment to its exit code: opens the data, meets the other ranks, builds the
// trainer, trains, and tells the agent about it. Run reads as the order of events.
//
// Owned by main; Run on one thread, RequestStop from any.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "muster/v1/worker.pb.h"
#include "worker/comm/communicator.h"
#include "worker/engine/trainer.h"
#include "worker/rank/data_sources.h"
#include "worker/rank/exit_status.h"
#include "worker/rank/options.h"
#include "worker/rank/rendezvous_client.h"
#include "worker/rank/reporter.h"

namespace muster {

class RankRunner {
 public:
  // The clock outlives this.
  RankRunner(const RankOptions& options, const Clock* clock) : options_(options), clock_(clock) {}

  // The process's exit code (common/base/exit_codes.h). Errors are printed to stderr in one line.
  int Run();

  // After the step under way the ranks write a checkpoint and Run returns kExitStopped. False when training has not
  // begun: there is nothing to save, and the caller may end the process.
  bool RequestStop();

 private:
  // Each part of Run leaves its stage in stage_, by which an error is judged.
  absl::StatusOr<TrainingOutcome> RunToEnd();
  absl::Status Prepare();
  absl::StatusOr<std::unique_ptr<Communicator>> JoinWorld();
  absl::StatusOr<std::unique_ptr<Trainer>> BuildTrainer(Communicator& world);
  void ReportStarted(const Trainer& trainer, const EngineConfig& config);
  void ReportFinished(const absl::Status& status, int exit_code);
  void EndPhase(const std::string& name);

  const RankOptions options_;
  const Clock* const clock_;

  RankStage stage_ = RankStage::kPrepare;
  RewindPoint rewind_;                             // when that is how training ended
  absl::Duration phase_began_;                     // since boot
  std::map<std::string, double> startup_seconds_;  // by phase

  struct Parts;  // what Prepare makes and all else uses, in the order of making
  std::shared_ptr<Parts> parts_;

  absl::Mutex mutex_;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Trainer* trainer_ ABSL_GUARDED_BY(mutex_) = nullptr;  // while it can be stopped
};

}  // namespace muster
