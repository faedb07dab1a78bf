#include "worker/data/prefetching_loader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::Status CheckOptions(const PrefetchingLoaderOptions& options) {
  const auto wrong = [](absl::string_view field, int64_t value, absl::string_view expected) {
    return absl::InvalidArgumentError(absl::StrCat("loader: ", field, " is ", value, ", expected ", expected));
  };
  if (options.replicas < 1) return wrong("replicas", options.replicas, "at least 1");
  if (options.replica < 0 || options.replica >= options.replicas) {
    return wrong("replica", options.replica, absl::StrCat("0 to ", options.replicas - 1));
  }
  if (options.micro_batch < 1) return wrong("micro_batch", options.micro_batch, "at least 1");
  const int64_t unit = options.replicas * options.micro_batch;
  if (options.global_batch < 1 || options.global_batch % unit != 0) {
    return wrong("global_batch", options.global_batch,
                 absl::StrCat("a multiple of ", options.replicas, " replicas x micro-batch ", options.micro_batch));
  }
  if (options.first_step < 0) return wrong("first_step", options.first_step, "at least 0");
  if (options.first_sample < 0) return wrong("first_sample", options.first_sample, "at least 0");
  if (options.slots < 1) return wrong("slots", options.slots, "at least 1");
  return absl::OkStatus();
}

}  // namespace

int64_t PrefetchingLoader::MemoryElements(const PrefetchingLoaderOptions& options, int64_t sequence_length) {
  return options.slots * 2 * (options.global_batch / options.replicas) * sequence_length;
}

absl::StatusOr<std::unique_ptr<PrefetchingLoader>> PrefetchingLoader::Start(const SampleSource& source,
                                                                            const Clock& clock,
                                                                            const PrefetchingLoaderOptions& options,
                                                                            absl::Span<int32_t> memory) {
  MUSTER_RETURN_IF_ERROR(CheckOptions(options));
  const int64_t needed = MemoryElements(options, source.sequence_length());
  if (static_cast<int64_t>(memory.size()) < needed) {
    return absl::InvalidArgumentError(
        absl::StrCat("loader: memory holds ", memory.size(), " values, ", options.slots, " slots need ", needed));
  }
  return std::unique_ptr<PrefetchingLoader>(new PrefetchingLoader(source, clock, options, memory));
}

PrefetchingLoader::PrefetchingLoader(const SampleSource& source, const Clock& clock,
                                     const PrefetchingLoaderOptions& options, absl::Span<int32_t> memory)
    : source_(source),
      clock_(clock),
      options_(options),
      filled_(options.first_step),
      released_(options.first_step),
      next_(options.first_step) {
  const size_t half = static_cast<size_t>(options.global_batch / options.replicas * source.sequence_length());
  for (size_t i = 0; i < static_cast<size_t>(options.slots); ++i) {
    slots_.push_back({memory.subspan(2 * i * half, half), memory.subspan((2 * i + 1) * half, half), 0});
  }
  thread_ = std::thread([this] { Run(); });
}

PrefetchingLoader::~PrefetchingLoader() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

bool PrefetchingLoader::MayFill() const { return stopping_ || filled_ - released_ < options_.slots; }

bool PrefetchingLoader::MayTake() const { return !error_.ok() || filled_ > next_; }

bool PrefetchingLoader::Stopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void PrefetchingLoader::Run() {
  for (int64_t step = options_.first_step; step < options_.end_step; ++step) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &PrefetchingLoader::MayFill));
      if (stopping_) return;
    }
    absl::Status status = FillSlot(step, slots_[static_cast<size_t>(step % options_.slots)]);
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    if (!status.ok()) {
      error_ = absl::Status(status.code(), absl::StrCat("data of step ", step, ": ", status.message()));
      return;
    }
    ++filled_;
  }
}

absl::Status PrefetchingLoader::FillSlot(int64_t step, Slot& slot) {
  const int64_t share = options_.global_batch / options_.replicas;
  const int64_t first =
      options_.first_sample + (step - options_.first_step) * options_.global_batch + options_.replica * share;
  const size_t length = static_cast<size_t>(source_.sequence_length());
  slot.counted_targets = 0;
  // Sample by sample, so that a stop waits for no more than one. Rows of the micro-batches lie in the order of their
  // samples.
  for (int64_t row = 0; row < share; ++row) {
    if (Stopping()) return absl::OkStatus();
    const size_t at = static_cast<size_t>(row) * length;
    MUSTER_ASSIGN_OR_RETURN(const int64_t counted, FillBatch(source_, first + row, slot.tokens.subspan(at, length),
                                                             slot.targets.subspan(at, length)));
    slot.counted_targets += counted;
  }
  return absl::OkStatus();
}

absl::StatusOr<StepBatch> PrefetchingLoader::Next() {
  const absl::Duration began = clock_.SinceBoot();
  absl::MutexLock lock(&mutex_);
  released_ = next_;
  if (next_ >= options_.end_step) {
    return absl::OutOfRangeError(absl::StrCat("the loader ends before step ", options_.end_step));
  }
  mutex_.Await(absl::Condition(this, &PrefetchingLoader::MayTake));
  // Steps that were read before the error are still good.
  if (filled_ <= next_) return error_;
  const Slot& slot = slots_[static_cast<size_t>(next_ % options_.slots)];
  StepBatch batch;
  batch.step = next_++;
  batch.micro_batches = options_.global_batch / options_.replicas / options_.micro_batch;
  batch.tokens = slot.tokens;
  batch.targets = slot.targets;
  batch.counted_targets = slot.counted_targets;
  batch.waited = clock_.SinceBoot() - began;
  return batch;
}

}  // namespace muster
