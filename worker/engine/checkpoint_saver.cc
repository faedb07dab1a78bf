#include "worker/engine/checkpoint_saver.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/engine/gather_strings.h"

namespace muster {

CheckpointSaver::CheckpointSaver(Communicator& world, const EngineConfig& config, Device& device, const Clock& clock,
                                 const std::vector<StageParameter>& parameters, const Tensor& staging)
    : world_(world), config_(config), device_(device), clock_(clock), staging_(staging) {
  char* next = staging.as<char>();
  for (const StageParameter& parameter : parameters) {
    for (const StateBlock& block : parameter.answered_for) {
      for (const StateTensor& state : StatesOf(block)) {
        tensors_.push_back(LocalTensorOf(parameter.info, state.kind, block.box,
                                         asynchronous() ? static_cast<void*>(next) : state.tensor.data));
        sources_.push_back(state.tensor);
        if (asynchronous()) next += state.tensor.bytes();
      }
    }
  }
  MUSTER_CHECK(next - staging.as<char>() <= staging.bytes(), "a checkpoint takes ", next - staging.as<char>(),
               " bytes, its staging has ", staging.bytes());
}

// A save that is cut short leaves what a crash leaves.
CheckpointSaver::~CheckpointSaver() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointSaver::Start(const TrainingPosition& position) {
  MUSTER_CHECK(!busy(), "the checkpoint of step ", position_.steps_done, " is still being written");
  const absl::Duration begin = clock_.SinceBoot();
  position_ = position;
  report_ = {.step = position.steps_done,
             .directory = CheckpointPath(config_, position),
             .consumed_samples = position.consumed_samples};
  if (asynchronous()) CopyToStaging();
  phase_ = Phase::kWriting;
  RunInBackground([this]() -> absl::Status {
    record_.clear();
    if (tensors_.empty()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(
        const ShardRecord record,
        WriteShard(config_.checkpoint.directory, CheckpointIdOf(config_, position_), config_.rank, tensors_));
    report_.bytes = record.file.bytes;
    record_ = SerializeShardRecord(record);
    return absl::OkStatus();
  });
  report_.seconds += absl::ToDoubleSeconds(clock_.SinceBoot() - begin);
}

std::optional<CheckpointSaver::Result> CheckpointSaver::Advance() {
  MUSTER_CHECK(busy());
  const absl::Duration begin = clock_.SinceBoot();
  const bool committed = phase_ == Phase::kCommitting;
  const absl::Status mine = Join();
  const absl::Status status = committed ? ShareStatus(world_, mine) : BeginCommit(mine);
  report_.seconds += absl::ToDoubleSeconds(clock_.SinceBoot() - begin);
  if (!committed && status.ok()) return std::nullopt;
  phase_ = Phase::kIdle;
  return Result{.status = status, .report = report_};
}

CheckpointSaver::Result CheckpointSaver::Finish() {
  std::optional<Result> result;
  while (!result.has_value()) result = Advance();
  return *std::move(result);
}

void CheckpointSaver::CopyToStaging() {
  for (size_t i = 0; i < sources_.size(); ++i) {
    device_.CopyToHost(tensors_[i].data, sources_[i].data, sources_[i].bytes());
  }
}

void CheckpointSaver::RunInBackground(std::function<absl::Status()> task) {
  done_.store(false, std::memory_order_relaxed);
  thread_ = std::thread([this, task = std::move(task)] {
    const absl::Duration begin = clock_.SinceBoot();
    task_status_ = task();
    task_time_ = clock_.SinceBoot() - begin;
    done_.store(true, std::memory_order_release);
  });
}

absl::Status CheckpointSaver::Join() {
  if (!thread_.joinable()) return absl::OkStatus();
  thread_.join();
  report_.background_seconds += absl::ToDoubleSeconds(task_time_);
  return std::move(task_status_);
}

// `written`: what became of this rank's shard. After an error of any rank nothing of the checkpoint is left.
absl::Status CheckpointSaver::BeginCommit(const absl::Status& written) {
  if (absl::Status status = ShareStatus(world_, written); !status.ok()) {
    if (world_.rank() == 0) DiscardCheckpoint(config_, position_);
    return status;
  }
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> records, GatherStrings(world_, record_));
  phase_ = Phase::kCommitting;
  if (world_.rank() != 0) return absl::OkStatus();
  RunInBackground([this, records = std::move(records)] { return CommitCheckpoint(config_, position_, records); });
  return absl::OkStatus();
}

}  // namespace muster
