#include "worker/engine/batches.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/ledger.h"
#include "worker/kernels/kernels.h"

namespace muster {
namespace {

constexpr char kTrainingEntry[] = "staging/batches";
constexpr char kValidationEntry[] = "staging/validation";

absl::Span<int32_t> HostValues(const Tensor& bytes, int64_t count) {
  return {bytes.as<int32_t>(), static_cast<size_t>(count)};
}

static_assert(kIgnoredSampleTarget == kernels::kIgnoredTarget, "samples go to the loss as they are");

// Kernels take tensors that they could write; tokens and targets are only read.
Tensor AsTensor(absl::Span<const int32_t> values) {
  return Tensor(const_cast<int32_t*>(values.data()), DType::kI32, {static_cast<int64_t>(values.size())});
}

}  // namespace

absl::StatusOr<TrainingBatches> TrainingBatches::Start(const SampleSource& source, const Clock& clock,
                                                       const Layout& layout, int64_t replica, const Position& position,
                                                       int64_t loader_threads, StageMemory& memory) {
  if (source.sequence_length() != layout.sequence_length) {
    return absl::InvalidArgumentError(absl::StrCat("training data has sequences of ", source.sequence_length(),
                                                   " tokens, sequence_length is ", layout.sequence_length));
  }
  TrainingBatches batches;
  if (!memory.has(kTrainingEntry)) return batches;
  const PrefetchingLoaderOptions options{.global_batch = layout.global_batch(),
                                         .micro_batch = layout.micro_batch,
                                         .replicas = layout.data,
                                         .replica = replica,
                                         .first_step = position.steps_done,
                                         .first_sample = position.consumed_samples,
                                         .end_step = position.last_step,
                                         .slots = layout.prefetch_steps,
                                         .threads = loader_threads,
                                         .document_starts = layout.document_mask};
  const int64_t elements = PrefetchingLoader::MemoryElements(options, layout.sequence_length);
  MUSTER_ASSIGN_OR_RETURN(
      batches.loader_,
      PrefetchingLoader::Start(source, clock, options, HostValues(memory.BindBytes(kTrainingEntry), elements)));
  return batches;
}

absl::Status TrainingBatches::Next() {
  if (loader_ == nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(batch_, loader_->Next());
  return absl::OkStatus();
}

MicroBatch TrainingBatches::At(int64_t micro_batch, float loss_scale) const {
  MicroBatch result{.accumulate = micro_batch > 0, .loss_scale = loss_scale};
  if (loader_ != nullptr) {
    result.tokens = AsTensor(batch_.micro_batch_tokens(micro_batch));
    result.targets = AsTensor(batch_.micro_batch_targets(micro_batch));
    if (!batch_.document_starts.empty()) {
      result.document_starts = AsTensor(batch_.micro_batch_document_starts(micro_batch));
    }
  }
  return result;
}

ValidationBatches::ValidationBatches(const SampleSource* source, const Layout& layout, int64_t replica, int64_t windows,
                                     StageMemory& memory)
    : source_(source), layout_(layout), replica_(replica), windows_(source == nullptr ? 0 : windows) {
  if (!memory.has(kValidationEntry)) return;
  const int64_t positions = layout.micro_batch * layout.sequence_length;
  const int64_t values = (layout.document_mask ? 3 : 2) * positions;
  absl::Span<int32_t> free = HostValues(memory.BindBytes(kValidationEntry), values);
  const auto take = [&free, positions] {
    const absl::Span<int32_t> taken = free.first(static_cast<size_t>(positions));
    free.remove_prefix(taken.size());
    return taken;
  };
  rows_.tokens = take();
  rows_.targets = take();
  if (layout.document_mask) rows_.document_starts = take();
}

int64_t ValidationBatches::micro_batches() const {
  const int64_t windows_at_once = layout_.micro_batch * layout_.data;
  return (windows_ + windows_at_once - 1) / windows_at_once;
}

absl::StatusOr<MicroBatch> ValidationBatches::Read(int64_t micro_batch) {
  counted_targets_ = 0;
  if (rows_.tokens.empty()) return MicroBatch{};
  const int64_t first = (micro_batch * layout_.data + replica_) * layout_.micro_batch;
  const int64_t count = std::clamp<int64_t>(windows_ - first, 0, layout_.micro_batch);
  const size_t filled = static_cast<size_t>(count);
  const size_t length = static_cast<size_t>(layout_.sequence_length);
  if (count > 0) {
    MUSTER_ASSIGN_OR_RETURN(counted_targets_, FillBatch(*source_, first, Subrows(rows_, 0, filled, length)));
  }
  FillIgnored(Subrows(rows_, filled, static_cast<size_t>(layout_.micro_batch) - filled, length));
  MicroBatch batch{.tokens = AsTensor(rows_.tokens), .targets = AsTensor(rows_.targets)};
  if (!rows_.document_starts.empty()) batch.document_starts = AsTensor(rows_.document_starts);
  return batch;
}

}  // namespace muster
