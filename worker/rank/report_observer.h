// Turns what the trainer tells into reports for the agent, and into lines for the rank's log.
#pragma once

#include <functional>
#include <string>

#include "muster/v1/worker.pb.h"
#include "worker/engine/observer.h"

namespace muster {

class ReportObserver : public TrainerObserver {
 public:
  using Send = std::function<void(v1::RankReport report)>;

  // `leader`: this rank speaks for the job, and its log has a line a second. Rank 0 tells what all ranks know alike:
  // events, and checkpoints by their path below `checkpoint_root`.
  ReportObserver(Send send, int64_t rank, int64_t attempt, bool leader, std::string checkpoint_root)
      : send_(std::move(send)),
        rank_(rank),
        attempt_(attempt),
        leader_(leader),
        checkpoint_root_(std::move(checkpoint_root)) {}

  void OnStep(const StepReport& report) override;
  void OnValidation(const ValidationReport& report) override;
  void OnCheckpoint(const CheckpointReport& report) override;
  void OnEvent(const EngineEvent& event) override;
  void OnTrace(const TraceReport& report) override;

 private:
  const Send send_;
  const int64_t rank_;
  const int64_t attempt_;
  const bool leader_;
  const std::string checkpoint_root_;
  double seconds_since_line_ = 1;  // of steps; the first step has a line
};

// For RankStarted.
void SetMemory(const MemoryReport& memory, v1::RankStarted& started);

}  // namespace muster
