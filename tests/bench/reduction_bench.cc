// How long two replicas wait for the reduction of their gradients when it begins during backward, and when it begins
// afterwards. Ranks are threads of this process whose bytes go through TCP on loopback.
//
//   reduction_bench
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "tests/support/gloo_harness.h"
#include "worker/engine/initial_weights.h"
#include "worker/engine/rank_engine.h"

namespace muster {
namespace {

constexpr int kReplicas = 2;
constexpr int kSteps = 6;  // of each kind, taken in turns; the first of each is not counted

EngineConfig Job() {
  EngineConfig config;
  config.model = {.layers = 4, .hidden = 256, .heads = 8, .kv_heads = 8, .ffn = 1024, .vocab = 2048, .context = 64};
  config.layout = {.data = kReplicas, .micro_batch = 2, .accumulation_steps = 1, .sequence_length = 64};
  config.stages = {{0, config.model.units()}};
  config.training.steps = 1;
  return config;
}

struct Figures {
  double exposed_seconds = 0;  // in which a rank did nothing but communicate
  double step_seconds = 0;     // forward, backward and reduction
};

absl::StatusOr<Figures> Step(RankEngine& engine, const MicroBatch& batch, bool overlapped) {
  engine.timer.Restart();
  const auto unit_done = [&](const Unit& unit) {
    return overlapped ? engine.reduction.GradientsReady(unit.index) : absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(engine.pipeline.Train([&](int64_t) { return batch; }, unit_done).status());
  MUSTER_RETURN_IF_ERROR(engine.reduction.Finish());
  const PhaseSeconds seconds = engine.timer.Seconds();
  Figures figures{.exposed_seconds = seconds[static_cast<size_t>(Phase::kCommExposed)]};
  for (const double phase : seconds) figures.step_seconds += phase;
  return figures;
}

absl::Status RunRank(Communicator& world, std::vector<Figures>& overlapped, std::vector<Figures>& afterwards) {
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  EngineConfig config = Job();
  config.rank = world.rank();
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<RankEngine> engine, RankEngine::Build(config, world, *clock));
  MUSTER_RETURN_IF_ERROR(
      InitializeParameters(*engine->kernels, engine->parameters,
                           [&](const ParameterInfo& parameter, int64_t first, absl::Span<float> values) {
                             InitialWeights(config.model, 1, parameter, first, values);
                             return absl::OkStatus();
                           }));
  MUSTER_RETURN_IF_ERROR(engine->PublishWeights());
  const int64_t rows = config.layout.micro_batch * config.layout.sequence_length;
  std::vector<int32_t> tokens(static_cast<size_t>(rows));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 31 % 2048);
  const Tensor view(tokens.data(), DType::kI32, {rows});
  const MicroBatch batch{.tokens = view, .targets = view, .loss_scale = 1.0f / static_cast<float>(rows)};
  for (int step = 0; step < kSteps; ++step) {
    MUSTER_RETURN_IF_ERROR(Barrier(world));
    MUSTER_ASSIGN_OR_RETURN(const Figures with, Step(*engine, batch, /*overlapped=*/true));
    MUSTER_RETURN_IF_ERROR(Barrier(world));
    MUSTER_ASSIGN_OR_RETURN(const Figures without, Step(*engine, batch, /*overlapped=*/false));
    if (step == 0 || world.rank() != 0) continue;
    overlapped.push_back(with);
    afterwards.push_back(without);
  }
  return Barrier(world);
}

void Print(const char* name, std::vector<Figures> figures) {
  std::sort(figures.begin(), figures.end(),
            [](const Figures& a, const Figures& b) { return a.exposed_seconds < b.exposed_seconds; });
  const Figures& median = figures[figures.size() / 2];
  std::printf("%-16s %8.1f ms exposed of %8.1f ms\n", name, 1e3 * median.exposed_seconds, 1e3 * median.step_seconds);
}

int Main() {
  std::vector<Figures> overlapped;
  std::vector<Figures> afterwards;
  for (const absl::Status& status :
       RunGlooRanks(kReplicas, [&](Communicator& world) { return RunRank(world, overlapped, afterwards); })) {
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("GPT-2 of %lld parameters, %d replicas; the median of %d steps on rank 0\n",
              static_cast<long long>(ParameterCount(Job().model)), kReplicas, kSteps - 1);
  Print("during backward", overlapped);
  Print("afterwards", afterwards);
  return 0;
}

}  // namespace
}  // namespace muster

int main() { return muster::Main(); }
