// Runs whole jobs with ranks as threads of the test, and keeps what each rank said and ended with.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/formats/hugging_face_self_check.h"
#include "tests/support/rank_harness.h"
#include "worker/data/sample_source.h"
#include "worker/engine/engine_config.h"
#include "worker/engine/trainer.h"

namespace muster {

// Samples that are a pure function of their index. A token follows from the one before in two cases of three, so that
// there is something to learn; sample i ignores i mod 4 of its targets, so that micro-batches count differently many.
class SyntheticSource : public SampleSource {
 public:
  SyntheticSource(int64_t sequence_length, int64_t vocab) : sequence_length_(sequence_length), vocab_(vocab) {}
  int64_t sequence_length() const override { return sequence_length_; }
  absl::Status Sample(int64_t index, const SampleRows& row) const override;

 private:
  const int64_t sequence_length_;
  const int64_t vocab_;
};

// A GPT-2 of four layers, small enough for twenty steps on sixteen threads in a second.
ModelShape TinyModel();

// 20 steps of TinyModel on one rank: micro-batches of 2 sequences of 16 tokens, 4 of them a step; clipping at a norm
// that most steps exceed.
EngineConfig TinyJob();

// The same job cut: `cuts` are the first units of the virtual stages after the first, `interleave` of which each rank
// of the pipeline runs; `replicas` share the micro-batches of the step.
EngineConfig Cut(EngineConfig config, const std::vector<int64_t>& cuts, int64_t replicas, int64_t interleave = 1);

using WeightMap = std::map<std::string, std::vector<float>>;

// A part of a logical tensor, as a rank holds it.
struct HeldWeights {
  ParameterInfo parameter;
  Box box;
  std::vector<float> values;
};

struct RankResult {
  absl::Status status;
  TrainingOutcome outcome = TrainingOutcome::kCompleted;
  std::vector<StepReport> steps;
  std::vector<ValidationReport> validations;
  std::vector<CheckpointReport> checkpoints;
  std::vector<EngineEvent> events;
  std::vector<TraceReport> traces;
  RewindPoint rewind;                // when the outcome is kRewind
  std::vector<HeldWeights> weights;  // when it ended well
};

struct RunOptions {
  const SampleSource* train = nullptr;       // null: SyntheticSource
  const SampleSource* validation = nullptr;  // null: none
  std::function<absl::Status(const ParameterInfo&, int64_t first_element, absl::Span<float>)> initial_weights;
  const LogitsSelfCheck* self_check = nullptr;
  const Clock* clock = nullptr;  // of every rank; null: the system's, and DATA_WAIT is not kept
  std::function<absl::Status(int64_t rank, int64_t steps_done)> before_optimizer_step;
  std::function<void(int64_t rank, const StepReport&, Trainer&)> on_step;
  std::function<std::vector<absl::Status>(int size, const RankBody& body)> run_ranks;  // empty: RunRanks
};

// By rank.
std::vector<RankResult> RunJob(const EngineConfig& config, const RunOptions& options = {});

// The weights of all ranks together. REQUIRES: all ranks ended well. Fails the test when two ranks that hold an element
// differ, or no rank holds it.
WeightMap MergedWeights(const std::vector<RankResult>& results);

std::vector<double> Losses(const std::vector<RankResult>& results);  // of rank 0

// Expects equal losses, norms, and weights, bit for bit.
void ExpectIdentical(const std::vector<RankResult>& a, const std::vector<RankResult>& b);

// ||a - b|| / ||b|| over all elements, in fp64.
double RelativeError(absl::Span<const float> a, absl::Span<const float> b);

}  // namespace muster
