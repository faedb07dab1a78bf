// What the trainer tells while it runs. worker/rank forwards it to the agent; tests record it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/plan/ledger.h"

namespace muster {

// Where a rank's wall time goes. Within one step they add up to its wall time exactly; kOther is what is left.
enum class Phase {
  kForward,
  kBackward,
  kOptimizer,
  kCommExposed,  // waiting for reductions and votes
  kBubble,       // waiting for a pipeline neighbour
  kDataWait,     // waiting for the loader
  kCheckpoint,
  kOther,
};
inline constexpr int kPhases = 8;
const char* PhaseName(Phase phase);  // "comm_exposed"

using PhaseSeconds = std::array<double, kPhases>;  // by Phase

// Bytes of this rank's arena. Constant while the trainer lives.
struct MemoryReport {
  std::array<int64_t, kMemoryCategories> planned_bytes{};  // by MemoryCategory, from the ledger
  std::array<int64_t, kMemoryCategories> used_bytes{};  // of the tensors that the engine has bound; equal to the plan
  int64_t planned_arena_bytes = 0;  // what the plan says the arena takes: less than the sum, as lifetimes share memory
  int64_t arena_bytes = 0;          // what was allocated
  int64_t lower_bound_bytes = 0;    // no placement of these lifetimes is smaller
};

// One optimizer step. Loss, norm and rates are equal on every rank.
struct StepReport {
  int64_t step = 0;          // from 1, of the whole job
  double loss = 0;           // mean over the counted targets of the global batch, nats per token
  int64_t tokens = 0;        // counted targets of the global batch
  double gradient_norm = 0;  // before clipping
  double clip_factor = 1;    // what the gradients were multiplied with
  double learning_rate = 0;
  double loss_scale = 1;         // what fp16 multiplied the loss with; 1 in other precisions
  bool skipped = false;          // its samples were consumed and nothing was updated; loss and norm may not be finite
  int64_t skipped_steps = 0;     // of the whole job up to this step, it included
  double seconds = 0;            // wall time of the step on this rank, its checkpoint included, its validation not
  PhaseSeconds phase_seconds{};  // adds up to `seconds`
  MemoryReport memory;
};

struct ValidationReport {
  int64_t step = 0;       // steps done before it; 0: initial weights
  double loss = 0;        // mean over counted targets, nats per token
  double perplexity = 0;  // exp(loss)
  int64_t tokens = 0;     // counted targets
  double seconds = 0;
};

// Made only when the checkpoint is complete and can be resumed from.
struct CheckpointReport {
  int64_t step = 0;
  std::string directory;
  int64_t consumed_samples = 0;   // training samples used up to it
  int64_t bytes = 0;              // of this rank's share
  double seconds = 0;             // for which training stood still on this rank
  double background_seconds = 0;  // in which a thread of this rank wrote, beside training where it could
};

// What somebody who watches the job should know. `type` is stable: programs go by it, people read the message.
struct EngineEvent {
  enum class Severity { kInfo, kWarning, kError };
  Severity severity = Severity::kInfo;
  std::string type;     // UPPER_SNAKE_CASE: "STEP_SKIPPED"
  std::string message;  // one sentence
  std::map<std::string, std::string> details;
  bool of_this_rank = false;  // else every rank tells the same, and one of them is enough
};

// What a rank's thread did for a while. Spans are nested or disjoint.
struct TraceSpan {
  enum class Category {
    kStep,   // one optimizer step, its checkpoint and validation included
    kPass,   // forward or backward of one micro-batch
    kUnit,   // of one unit, within a pass
    kPhase,  // of any other phase
  };
  std::string name;
  Category category = Category::kPhase;
  int64_t step = 0;          // from 1
  int64_t micro_batch = -1;  // of a pass
  absl::Duration begin;      // since boot, as Clock::SinceBoot
  absl::Duration end;
};
const char* TraceCategoryName(TraceSpan::Category category);  // "pass"

// The timeline of the steps that were asked for, on this rank.
struct TraceReport {
  int64_t first_step = 0;
  int64_t steps = 0;             // may be fewer than were asked for, when training ended
  std::vector<TraceSpan> spans;  // in the order of their ends
  int64_t dropped_spans = 0;     // that there was no room for
  // Wall clock minus Clock::SinceBoot: puts the ranks of several hosts on one axis of time, as well as their clocks
  // agree.
  absl::Duration wall_offset;
};

// Called on the trainer's thread, between steps, on every rank. An implementation must return soon: training waits for
// it.
class TrainerObserver {
 public:
  virtual ~TrainerObserver() = default;
  virtual void OnStep(const StepReport& report) = 0;
  virtual void OnValidation(const ValidationReport& report) = 0;
  virtual void OnCheckpoint(const CheckpointReport& report) = 0;
  virtual void OnEvent(const EngineEvent& event) = 0;
  virtual void OnTrace(const TraceReport& report) = 0;
};

}  // namespace muster
