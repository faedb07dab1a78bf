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
  if (options.threads < 1) return wrong("threads", options.threads, "at least 1");
  return absl::OkStatus();
}

}  // namespace

int64_t PrefetchingLoader::MemoryElements(const PrefetchingLoaderOptions& options, int64_t sequence_length) {
  const int64_t values = options.document_starts ? 3 : 2;  // a position
  return options.slots * values * (options.global_batch / options.replicas) * sequence_length;
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
      slots_(static_cast<size_t>(options.slots)),
      unclaimed_{options.first_step, 0},
      filled_(options.first_step),
      released_(options.first_step),
      next_(options.first_step) {
  const size_t size = static_cast<size_t>(share() * source.sequence_length());
  const auto take = [&memory, size] {
    const absl::Span<int32_t> taken = memory.first(size);
    memory.remove_prefix(size);
    return taken;
  };
  {
    absl::MutexLock lock(&mutex_);
    for (Slot& slot : slots_) {
      slot.rows.tokens = take();
      slot.rows.targets = take();
      if (options.document_starts) slot.rows.document_starts = take();
    }
  }
  for (int64_t i = 0; i < options.threads; ++i) threads_.emplace_back([this] { Run(); });
}

PrefetchingLoader::~PrefetchingLoader() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

bool PrefetchingLoader::Over() const { return stopping_ || !error_.ok() || unclaimed_.step >= options_.end_step; }

bool PrefetchingLoader::MayClaim() const { return Over() || unclaimed_.step - released_ < options_.slots; }

// After an error the rows claimed before it are still read: every step before the one that failed gets complete.
bool PrefetchingLoader::MayTake() const { return filled_ > next_ || (!error_.ok() && claimed_rows_ == 0); }

void PrefetchingLoader::Run() {
  RowOfStep claimed;
  SampleRows row;
  while (Claim(claimed, row)) {
    const int64_t first_of_step = options_.first_sample + (claimed.step - options_.first_step) * options_.global_batch;
    Complete(claimed, FillBatch(source_, first_of_step + options_.replica * share() + claimed.row, row));
  }
}

// The next row to read, in the order of samples, once its slot is free; false when there is none any more.
bool PrefetchingLoader::Claim(RowOfStep& claimed, SampleRows& row) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &PrefetchingLoader::MayClaim));
  if (Over()) return false;
  claimed = unclaimed_;
  ++claimed_rows_;
  Slot& slot = SlotOf(claimed.step);
  if (claimed.row == 0) {
    slot.step = claimed.step;
    slot.rows_left = share();
    slot.counted_targets = 0;
  }
  row = Subrows(slot.rows, static_cast<size_t>(claimed.row), 1, static_cast<size_t>(source_.sequence_length()));
  if (++unclaimed_.row == share()) unclaimed_ = {claimed.step + 1, 0};
  return true;
}

void PrefetchingLoader::Complete(const RowOfStep& done, const absl::StatusOr<int64_t>& counted) {
  absl::MutexLock lock(&mutex_);
  --claimed_rows_;
  if (!counted.ok()) {
    const bool earliest =
        error_.ok() || done.step < failed_.step || (done.step == failed_.step && done.row < failed_.row);
    if (!earliest) return;
    failed_ = done;
    error_ = absl::Status(counted.status().code(),
                          absl::StrCat("data of step ", done.step, ": ", counted.status().message()));
    return;
  }
  Slot& slot = SlotOf(done.step);
  slot.counted_targets += *counted;
  --slot.rows_left;
  while (SlotOf(filled_).step == filled_ && SlotOf(filled_).rows_left == 0) ++filled_;
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
  const Slot& slot = SlotOf(next_);
  StepBatch batch;
  batch.step = next_++;
  batch.micro_batches = share() / options_.micro_batch;
  batch.tokens = slot.rows.tokens;
  batch.targets = slot.rows.targets;
  batch.document_starts = slot.rows.document_starts;
  batch.counted_targets = slot.counted_targets;
  batch.waited = clock_.SinceBoot() - began;
  return batch;
}

}  // namespace muster
