// How fast one job trains in fp32 and in bf16, and where its time goes. Ranks are threads of this process on the local
// communicator, so the figures are those of the engine: no network, no agent.
//
//   train_bench [STAGES [REPLICAS]]      defaults: 1 1
//
// Kernels are timed through the profiling ranges of the device; a phase's time outside every range counts as "other".
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/comm/local_communicator.h"
#include "worker/data/sample_source.h"
#include "worker/engine/trainer.h"
#include "worker/kernels/context.h"
#include "worker/tensor/device.h"

namespace muster {
namespace {

constexpr int64_t kWarmUpSteps = 2;  // primitives are made, pages touched, branches learnt
constexpr int64_t kTimedSteps = 6;

// The back-end's device, adding up the time within each range less that of the ranges inside it.
class TimingDevice : public Device {
 public:
  TimingDevice(std::unique_ptr<Device> device, const Clock& clock) : device_(std::move(device)), clock_(clock) {}

  absl::StatusOr<void*> Allocate(MemorySpace space, int64_t bytes) override { return device_->Allocate(space, bytes); }
  void Free(MemorySpace space, void* block, int64_t bytes) override { device_->Free(space, block, bytes); }
  void CopyToDevice(void* to, const void* from, int64_t bytes) override { device_->CopyToDevice(to, from, bytes); }
  void CopyToHost(void* to, const void* from, int64_t bytes) override { device_->CopyToHost(to, from, bytes); }
  absl::Status Synchronize() override { return device_->Synchronize(); }

  void BeginRange(const char* name) override {
    Attribute();
    open_.push_back(name);
  }
  void EndRange() override {
    Attribute();
    open_.pop_back();
  }

  void Restart() { spent_.clear(); }
  const std::map<std::string, absl::Duration>& spent() const { return spent_; }

 private:
  void Attribute() {
    const absl::Duration now = clock_.SinceBoot();
    if (!open_.empty()) spent_[open_.back()] += now - since_;
    since_ = now;
  }

  const std::unique_ptr<Device> device_;
  const Clock& clock_;
  absl::Duration since_;
  std::vector<const char*> open_;
  std::map<std::string, absl::Duration> spent_;
};

// Any tokens will do: time does not depend on them.
class CountingSource : public SampleSource {
 public:
  CountingSource(int64_t sequence_length, int64_t vocab) : sequence_length_(sequence_length), vocab_(vocab) {}
  int64_t sequence_length() const override { return sequence_length_; }
  absl::Status Sample(int64_t index, const SampleRows& row) const override {
    for (size_t i = 0; i < row.tokens.size(); ++i) {
      row.tokens[i] = static_cast<int32_t>((index * 7919 + static_cast<int64_t>(i) * 31) % vocab_);
      row.targets[i] = static_cast<int32_t>((row.tokens[i] + 31) % vocab_);
    }
    return absl::OkStatus();
  }

 private:
  const int64_t sequence_length_;
  const int64_t vocab_;
};

// What the timed steps of one rank took, in seconds.
class RankTimes : public TrainerObserver {
 public:
  explicit RankTimes(TimingDevice& device) : device_(device) {}

  void OnStep(const StepReport& step) override {
    if (step.step <= kWarmUpSteps) {
      device_.Restart();
      return;
    }
    seconds += step.seconds;
    tokens += step.tokens;
    for (size_t i = 0; i < phases.size(); ++i) phases[i] += step.phase_seconds[i];
  }
  void OnValidation(const ValidationReport&) override {}
  void OnCheckpoint(const CheckpointReport&) override {}
  void OnEvent(const EngineEvent&) override {}
  void OnTrace(const TraceReport&) override {}

  double of(Phase phase) const { return phases[static_cast<size_t>(phase)]; }

  double seconds = 0;
  int64_t tokens = 0;
  PhaseSeconds phases{};

 private:
  TimingDevice& device_;
};

// The shares of the wall time of all ranks together.
struct Result {
  double tokens_per_second = 0;
  double seconds = 0;  // of all ranks
  std::map<std::string, double> kernel_seconds;
  double communication = 0, bubble = 0, data_wait = 0;
};

EngineConfig Job(Precision precision, int64_t stages, int64_t replicas) {
  EngineConfig config;
  config.model = {.layers = 4, .hidden = 512, .heads = 8, .kv_heads = 8, .ffn = 2048, .vocab = 2048, .context = 256};
  config.layout = {.data = replicas,
                   .pipeline = stages,
                   .micro_batch = 4,
                   .accumulation_steps = 8 / replicas,
                   .sequence_length = 256,
                   .precision = precision};
  for (int64_t stage = 0; stage < stages; ++stage) {
    config.stages.push_back({config.model.units() * stage / stages, config.model.units() * (stage + 1) / stages});
  }
  config.training.steps = kWarmUpSteps + kTimedSteps;
  return config;
}

void RunRank(EngineConfig config, Communicator& world, Result& result) {
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  absl::StatusOr<std::unique_ptr<Device>> opened = OpenDevice(0);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.status().ToString().c_str());
    std::exit(1);
  }
  TimingDevice device(*std::move(opened), *clock);
  RankTimes times(device);
  const CountingSource source(config.layout.sequence_length, config.model.vocab);
  config.rank = world.rank();
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(
      config, {.world = &world, .train = &source, .observer = &times, .clock = clock.get(), .device = &device});
  const absl::Status status = trainer.ok() ? (*trainer)->Run().status() : trainer.status();
  if (!status.ok()) {
    std::fprintf(stderr, "rank %d: %s\n", world.rank(), status.ToString().c_str());
    std::exit(1);
  }
  result.seconds = times.seconds;
  result.tokens_per_second = static_cast<double>(times.tokens) / times.seconds;
  for (const auto& [name, spent] : device.spent()) result.kernel_seconds[name] = absl::ToDoubleSeconds(spent);
  result.communication = times.of(Phase::kCommExposed);
  result.bubble = times.of(Phase::kBubble);
  result.data_wait = times.of(Phase::kDataWait);
}

Result RunJob(const EngineConfig& config) {
  std::vector<std::unique_ptr<LocalCommunicator>> group =
      MakeLocalGroup(static_cast<int>(config.layout.ranks()), absl::Minutes(5));
  std::vector<Result> ranks(group.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] { RunRank(config, *group[rank], ranks[rank]); });
  }
  for (std::thread& thread : threads) thread.join();

  Result total;
  total.tokens_per_second = ranks[0].tokens_per_second;
  for (const Result& rank : ranks) {
    total.seconds += rank.seconds;
    for (const auto& [name, seconds] : rank.kernel_seconds) total.kernel_seconds[name] += seconds;
    total.communication += rank.communication;
    total.bubble += rank.bubble;
    total.data_wait += rank.data_wait;
  }
  return total;
}

void PrintRow(const char* name, double fp32, double bf16) {
  std::printf("%-16s %9.1f %%  %9.1f %%\n", name, fp32, bf16);
}

void Print(const Result& fp32, const Result& bf16) {
  std::printf("%-16s %11s  %11s\n", "", "fp32", "bf16");
  std::printf("%-16s %11.0f  %11.0f   bf16 is %.2f times as fast\n", "tokens/s", fp32.tokens_per_second,
              bf16.tokens_per_second, bf16.tokens_per_second / fp32.tokens_per_second);
  const auto share = [](const Result& result, double seconds) { return 100 * seconds / result.seconds; };
  const auto kernels = [](const Result& result) {
    double sum = 0;
    for (const auto& [name, seconds] : result.kernel_seconds) sum += seconds;
    return sum;
  };
  const auto matmul = [](const Result& result) { return result.kernel_seconds.at("matmul"); };
  const auto other = [&](const Result& result) {
    return result.seconds - kernels(result) - result.communication - result.bubble - result.data_wait;
  };
  PrintRow("matmul", share(fp32, matmul(fp32)), share(bf16, matmul(bf16)));
  PrintRow("other kernels", share(fp32, kernels(fp32) - matmul(fp32)), share(bf16, kernels(bf16) - matmul(bf16)));
  for (const auto& [name, seconds] : fp32.kernel_seconds) {
    if (name == "matmul") continue;
    PrintRow(("  " + name).c_str(), share(fp32, seconds), share(bf16, bf16.kernel_seconds.at(name)));
  }
  PrintRow("communication", share(fp32, fp32.communication), share(bf16, bf16.communication));
  PrintRow("bubble", share(fp32, fp32.bubble), share(bf16, bf16.bubble));
  PrintRow("data wait", share(fp32, fp32.data_wait), share(bf16, bf16.data_wait));
  PrintRow("other", share(fp32, other(fp32)), share(bf16, other(bf16)));
}

int Main(int argc, char** argv) {
  const int64_t stages = argc > 1 ? std::atoi(argv[1]) : 1;
  const int64_t replicas = argc > 2 ? std::atoi(argv[2]) : 1;
  const EngineConfig job = Job(Precision::kFp32, stages, replicas);
  if (const absl::Status status = CheckEngineConfig(job); !status.ok()) {
    std::fprintf(stderr, "train_bench [STAGES [REPLICAS]]: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  std::printf("GPT-2 of %lld parameters, %lld stages x %lld replicas, %lld steps of %lld tokens, 1 thread per rank\n",
              static_cast<long long>(ParameterCount(job.model)), static_cast<long long>(stages),
              static_cast<long long>(replicas), static_cast<long long>(kTimedSteps),
              static_cast<long long>(job.layout.global_batch() * job.layout.sequence_length));
  const Result fp32 = RunJob(job);
  Print(fp32, RunJob(Job(Precision::kBf16, stages, replicas)));
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
