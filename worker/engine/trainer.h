// The engine of one rank: builds its stage in one arena, trains to the last step, validates and writes checkpoints on
// the way.
//
// Every rank of the job makes one Trainer and calls Run; they keep in step through `world`. Ranks may be processes or
// threads of one process (muster-rank --local): a Trainer touches nothing outside what it was given.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/formats/checkpoint_manifest.h"
#include "worker/comm/communicator.h"
#include "worker/engine/engine_config.h"
#include "worker/engine/observer.h"

namespace muster {

struct LogitsSelfCheck;  // common/formats/hugging_face_self_check.h
class Device;            // worker/tensor/device.h
class SampleSource;      // worker/data/sample_source.h

// What a Trainer is given and does not own; all of it outlives the Trainer.
struct TrainerParts {
  Communicator* world = nullptr;  // all ranks of the job, rank() == config.rank; the trainer splits its groups from it
  const SampleSource* train = nullptr;       // equal on every rank
  const SampleSource* validation = nullptr;  // equal on every rank; null when nothing is validated
  TrainerObserver* observer = nullptr;       // null: nobody listens
  const Clock* clock = nullptr;
  Device* device = nullptr;  // null: the trainer opens that of the linked back-end

  // Called on the trainer's thread before each optimizer step; an error ends the run with it. The lease check of a rank
  // whose agent may be gone.
  std::function<absl::Status()> before_optimizer_step;

  // Fills `values` with elements first_element, first_element + 1, ... (row-major) of one logical parameter; a pure
  // function. Empty: those of initial_weights.h, from training.seed.
  std::function<absl::Status(const ParameterInfo& parameter, int64_t first_element, absl::Span<float> values)>
      initial_weights;

  // What the initial weights are known to compute: Create refuses them when they do not. Null: nothing is known. Not
  // read when the job resumes.
  const LogitsSelfCheck* self_check = nullptr;
};

enum class TrainingOutcome {
  kCompleted,  // all steps are done, the last checkpoint is written
  kStopped,    // RequestStop was honoured by every rank after the same step, a checkpoint is written
  kRewind,     // the policy of the job wants to go back: RewindPoint says where to
};

// Where a job goes on after a step that its policy does not accept. Equal on every rank.
struct RewindPoint {
  int64_t step = 0;         // that was not accepted
  int64_t target_step = 0;  // resume from the newest checkpoint at or before it
  int64_t next_sample = 0;  // go on with this one: those up to the step's own are never seen again
  std::string type;         // "LOSS_SPIKE", "NON_FINITE"
  std::string reason;       // one sentence
};

class Trainer {
 public:
  // Allocates the arena, joins the groups, loads initial or resumed weights. Every rank calls it at the same time.
  // INVALID_ARGUMENT for a configuration, checkpoint or data that cannot be trained; RESOURCE_EXHAUSTED when the arena
  // cannot be had; UNAVAILABLE and DEADLINE_EXCEEDED from the communicator.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const EngineConfig& config, const TrainerParts& parts);

  virtual ~Trainer() = default;

  // Of this rank's arena, before and while it trains: a rank reports it as soon as it is ready.
  virtual MemoryReport Memory() const = 0;

  // Trains to the end, or until stopped. Once, on the thread that stays the trainer's.
  // FAILED_PRECONDITION when loss or gradients stop being finite and the policy does not go on (naming step, rank and
  // unit); UNAVAILABLE or
  // DEADLINE_EXCEEDED when a peer is gone. After an error the process, or all ranks of it, must end.
  virtual absl::StatusOr<TrainingOutcome> Run() = 0;

  // REQUIRES: Run has returned kRewind.
  virtual const RewindPoint& Rewind() const = 0;

  // Any thread or signal handler, once is enough on any one rank: all ranks stop after the same step, with a
  // checkpoint.
  virtual void RequestStop() = 0;

  // Any thread, any one rank (or all): all ranks write a checkpoint after the same step, the one under way or the next.
  // Nothing happens where the job has no checkpoint directory.
  virtual void RequestCheckpoint() = 0;

  // Any thread, any one rank (or all, with the same number): all ranks record the same `steps` steps, from the one that
  // begins next, and hand them to TrainerObserver::OnTrace when the last is done. While some are recorded, a request
  // does nothing.
  virtual void RequestTrace(int64_t steps) = 0;

  // Of the logical tensor `parameter`, the part `box`, row-major.
  using WeightVisitor =
      std::function<absl::Status(const ParameterInfo& parameter, const Box& box, absl::Span<const float> values)>;

  // The fp32 weights that this rank holds (the master weights in bf16), copied to the host one box at a time. With a
  // sharded optimizer, those that it updates. For tests and tools. REQUIRES: Run is not running.
  virtual absl::Status ForEachWeight(const WeightVisitor& visit) const = 0;
};

}  // namespace muster
