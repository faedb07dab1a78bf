#include "tests/worker/engine/training_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "worker/engine/stage_parameters.h"

namespace muster {
namespace {

class RecordingObserver : public TrainerObserver {
 public:
  RecordingObserver(RankResult& result, int64_t rank, const RunOptions& options)
      : result_(result), rank_(rank), options_(options) {}
  void Attach(Trainer* trainer) { trainer_ = trainer; }

  void OnStep(const StepReport& report) override {
    result_.steps.push_back(report);
    if (options_.on_step) options_.on_step(rank_, report, *trainer_);
  }
  void OnValidation(const ValidationReport& report) override { result_.validations.push_back(report); }
  void OnCheckpoint(const CheckpointReport& report) override { result_.checkpoints.push_back(report); }
  void OnEvent(const EngineEvent& event) override {
    // By the system's clock it tells only how busy the machine is.
    if (event.type == "DATA_WAIT" && options_.clock == nullptr) return;
    result_.events.push_back(event);
  }
  void OnTrace(const TraceReport& report) override { result_.traces.push_back(report); }

 private:
  RankResult& result_;
  const int64_t rank_;
  const RunOptions& options_;
  Trainer* trainer_ = nullptr;
};

absl::Status RunRank(EngineConfig config, const RunOptions& options, const SampleSource& train, Communicator& world,
                     RankResult& result) {
  const std::unique_ptr<Clock> system_clock = MakeSystemClock();
  config.rank = world.rank();
  RecordingObserver observer(result, config.rank, options);
  TrainerParts parts{.world = &world,
                     .train = &train,
                     .validation = options.validation,
                     .observer = &observer,
                     .clock = options.clock != nullptr ? options.clock : system_clock.get(),
                     .initial_weights = options.initial_weights,
                     .self_check = options.self_check};
  if (options.before_optimizer_step) {
    parts.before_optimizer_step = [&] {
      return options.before_optimizer_step(config.rank, static_cast<int64_t>(result.steps.size()));
    };
  }
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, Trainer::Create(config, parts));
  observer.Attach(trainer.get());
  MUSTER_ASSIGN_OR_RETURN(result.outcome, trainer->Run());
  if (result.outcome == TrainingOutcome::kRewind) result.rewind = trainer->Rewind();
  return trainer->ForEachWeight([&](const ParameterInfo& parameter, const Box& box, absl::Span<const float> values) {
    result.weights.push_back({parameter, box, {values.begin(), values.end()}});
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status SyntheticSource::Sample(int64_t index, const SampleRows& row) const {
  uint64_t state = static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15 + 1;
  const auto random = [&](int64_t bound) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(bound));
  };
  int64_t token = random(vocab_);
  for (size_t i = 0; i < row.tokens.size(); ++i) {
    row.tokens[i] = static_cast<int32_t>(token);
    token = random(3) == 0 ? random(vocab_) : (token * 5 + 3) % vocab_;
    row.targets[i] = static_cast<int32_t>(token);
  }
  const int64_t document = 3 + index % 7;  // positions of one
  for (size_t i = 0; i < row.document_starts.size(); ++i) {
    row.document_starts[i] = static_cast<int32_t>(static_cast<int64_t>(i) / document * document);
  }
  for (int64_t ignored = 0; ignored < index % 4; ++ignored) {
    row.targets[static_cast<size_t>(random(sequence_length_))] = kIgnoredSampleTarget;
  }
  return absl::OkStatus();
}

ModelShape TinyModel() {
  return {.family = ModelFamily::kGpt2,
          .layers = 4,
          .hidden = 32,
          .heads = 4,
          .kv_heads = 4,
          .ffn = 128,
          .vocab = 61,
          .context = 16};
}

EngineConfig TinyJob() {
  EngineConfig config;
  config.model = TinyModel();
  config.layout = {.micro_batch = 2, .accumulation_steps = 4, .sequence_length = 16};
  config.stages = {{0, config.model.units()}};
  config.training.steps = 20;
  config.training.adamw = {.learning_rate = 3e-3, .beta2 = 0.95};
  config.training.schedule = {.warmup_steps = 4};
  config.training.clip_grad_norm = 0.5;
  return config;
}

EngineConfig Cut(EngineConfig config, const std::vector<int64_t>& cuts, int64_t replicas, int64_t interleave) {
  config.stages.clear();
  int64_t first = 0;
  for (const int64_t cut : cuts) {
    config.stages.push_back({first, cut});
    first = cut;
  }
  config.stages.push_back({first, config.model.units()});
  config.layout.interleave = interleave;
  config.layout.pipeline = static_cast<int64_t>(config.stages.size()) / interleave;
  config.layout.accumulation_steps = config.layout.data * config.layout.accumulation_steps / replicas;
  config.layout.data = replicas;
  return config;
}

std::vector<RankResult> RunJob(const EngineConfig& config, const RunOptions& options) {
  const SyntheticSource synthetic(config.layout.sequence_length, config.model.vocab);
  const SampleSource& train = options.train != nullptr ? *options.train : synthetic;
  std::vector<RankResult> results(static_cast<size_t>(config.layout.ranks()));
  // A rank that fails only leaves: peers that need it notice, as they would of a process that has exited.
  const auto run_rank = [&](Communicator& world) {
    RankResult& result = results[static_cast<size_t>(world.rank())];
    result.status = RunRank(config, options, train, world, result);
    return absl::OkStatus();
  };
  const int ranks = static_cast<int>(config.layout.ranks());
  EXPECT_TRUE(AllOk(options.run_ranks ? options.run_ranks(ranks, run_rank) : RunRanks(ranks, run_rank)));
  return results;
}

WeightMap MergedWeights(const std::vector<RankResult>& results) {
  WeightMap merged;
  std::map<std::string, std::vector<bool>> held;
  for (const RankResult& result : results) {
    EXPECT_TRUE(result.status.ok()) << result.status.ToString();
    for (const HeldWeights& part : result.weights) {
      const std::string& name = part.parameter.name;
      merged[name].resize(static_cast<size_t>(part.parameter.elements()));
      held[name].resize(static_cast<size_t>(part.parameter.elements()));
      const absl::Status status =
          ForEachRun(part.box, part.parameter.dims, [&](int64_t in_tensor, int64_t in_box, int64_t elements) {
            for (int64_t i = 0; i < elements; ++i) {
              const size_t to = static_cast<size_t>(in_tensor + i);
              const float value = part.values[static_cast<size_t>(in_box + i)];
              EXPECT_TRUE(!held[name][to] || merged[name][to] == value) << name << " differs between ranks at " << to;
              merged[name][to] = value;
              held[name][to] = true;
            }
            return absl::OkStatus();
          });
      EXPECT_TRUE(status.ok());
    }
  }
  for (const auto& [name, elements] : held) {
    EXPECT_EQ(std::count(elements.begin(), elements.end(), false), 0) << "of " << name << " no rank holds";
  }
  return merged;
}

std::vector<double> Losses(const std::vector<RankResult>& results) {
  std::vector<double> losses;
  for (const StepReport& step : results[0].steps) losses.push_back(step.loss);
  return losses;
}

void ExpectIdentical(const std::vector<RankResult>& a, const std::vector<RankResult>& b) {
  ASSERT_EQ(a[0].steps.size(), b[0].steps.size());
  for (size_t i = 0; i < a[0].steps.size(); ++i) {
    EXPECT_EQ(a[0].steps[i].loss, b[0].steps[i].loss) << "step " << i + 1;
    EXPECT_EQ(a[0].steps[i].gradient_norm, b[0].steps[i].gradient_norm) << "step " << i + 1;
  }
  const WeightMap weights_a = MergedWeights(a);
  const WeightMap weights_b = MergedWeights(b);
  ASSERT_EQ(weights_a.size(), weights_b.size());
  for (const auto& [name, values] : weights_a) EXPECT_EQ(values, weights_b.at(name)) << name;
}

double RelativeError(absl::Span<const float> a, absl::Span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    error += difference * difference;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(error / norm);
}

}  // namespace muster
