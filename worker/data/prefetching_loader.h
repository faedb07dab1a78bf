// Brings the token batches of one data-parallel replica, one optimizer step at a time, a few steps ahead on threads of
// its own.
//
// Which sample goes where: row j of micro-batch m of replica d in step s is sample
//   first_sample + (s - first_step) * global_batch + d * (global_batch / replicas) + m * micro_batch + j
// so the set of samples of a step does not depend on the number of replicas, and a resumed run continues where it was.
// Nor does anything depend on the number of threads, which take rows in that order.
//
// Owned by the trainer, which alone calls Next(). The memory is the caller's (the arena's) and must outlive the loader.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "worker/data/sample_source.h"

namespace muster {

struct PrefetchingLoaderOptions {
  int64_t global_batch = 0;  // sequences of one optimizer step over all replicas; a multiple of replicas x micro_batch
  int64_t micro_batch = 0;   // sequences of one micro-batch of one replica
  int64_t replicas = 1;      // data-parallel size
  int64_t replica = 0;       // ours, 0 .. replicas-1

  int64_t first_step = 0;  // the first step that Next() returns
  // Its first sample: the consumed samples of the checkpoint, first_step * global_batch unless the batch changed.
  int64_t first_sample = 0;
  int64_t end_step = std::numeric_limits<int64_t>::max();  // the first step that is not loaded any more

  // Whole steps of memory, the one in use included. 2 hides the reading of a step behind the computing of one; more
  // helps only when the storage stalls for longer than a step. 1 reads while the trainer waits.
  int64_t slots = 2;

  // That read samples at the same time. More than 1 helps when one thread cannot read a step while one is computed.
  int64_t threads = 1;

  bool document_starts = false;  // samples come with the starts of their documents
};

// One replica's share of one step. Valid until the next call of Next().
struct StepBatch {
  int64_t step = 0;
  int64_t micro_batches = 0;
  absl::Span<const int32_t> tokens;           // (micro_batches, micro_batch, sequence_length)
  absl::Span<const int32_t> targets;          // the same shape
  absl::Span<const int32_t> document_starts;  // the same shape (SampleRows), or empty
  int64_t counted_targets = 0;                // of this replica's share; sum over replicas before dividing a loss
  absl::Duration waited;                      // what this call of Next() waited for the data

  // (micro_batch, sequence_length)
  absl::Span<const int32_t> micro_batch_tokens(int64_t m) const { return Part(tokens, m); }
  absl::Span<const int32_t> micro_batch_targets(int64_t m) const { return Part(targets, m); }
  absl::Span<const int32_t> micro_batch_document_starts(int64_t m) const { return Part(document_starts, m); }

 private:
  absl::Span<const int32_t> Part(absl::Span<const int32_t> all, int64_t m) const {
    const size_t size = all.size() / static_cast<size_t>(micro_batches);
    return all.subspan(static_cast<size_t>(m) * size, size);
  }
};

class PrefetchingLoader {
 public:
  // int32 values that `memory` must hold: tokens, targets and, where asked for, document starts of every slot.
  static int64_t MemoryElements(const PrefetchingLoaderOptions& options, int64_t sequence_length);

  // Starts the threads. `source` and `clock` must outlive the loader. INVALID_ARGUMENT names the field that is wrong.
  static absl::StatusOr<std::unique_ptr<PrefetchingLoader>> Start(const SampleSource& source, const Clock& clock,
                                                                  const PrefetchingLoaderOptions& options,
                                                                  absl::Span<int32_t> memory);

  // Stops at once, at any moment, and joins the threads; it never waits for more than the samples being read.
  ~PrefetchingLoader();
  PrefetchingLoader(const PrefetchingLoader&) = delete;
  PrefetchingLoader& operator=(const PrefetchingLoader&) = delete;

  // The next step; gives the memory of the one before back to the threads. Blocks until it is there.
  // The first error of the source, naming the step, once the steps read before it are taken, and from then on;
  // OUT_OF_RANGE from end_step on.
  absl::StatusOr<StepBatch> Next();

 private:
  struct Slot {
    SampleRows rows;
    int64_t step = -1;  // whose samples it holds
    int64_t rows_left = 0;
    int64_t counted_targets = 0;
  };
  struct RowOfStep {
    int64_t step = 0;
    int64_t row = 0;
  };

  PrefetchingLoader(const SampleSource& source, const Clock& clock, const PrefetchingLoaderOptions& options,
                    absl::Span<int32_t> memory);
  int64_t share() const { return options_.global_batch / options_.replicas; }  // rows of a step
  Slot& SlotOf(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return slots_[static_cast<size_t>(step % options_.slots)];
  }
  void Run();
  bool Claim(RowOfStep& claimed, SampleRows& rows);
  void Complete(const RowOfStep& done, const absl::StatusOr<int64_t>& counted);
  bool MayClaim() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayTake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const SampleSource& source_;
  const Clock& clock_;
  const PrefetchingLoaderOptions options_;

  absl::Mutex mutex_;
  // Slot step % slots. A row is written without the lock by the thread that claimed it; the trainer reads it once
  // `filled_` has passed the step.
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  RowOfStep unclaimed_ ABSL_GUARDED_BY(mutex_);       // what is claimed next
  int64_t claimed_rows_ ABSL_GUARDED_BY(mutex_) = 0;  // that are being read
  int64_t filled_ ABSL_GUARDED_BY(mutex_);            // steps below are in their slots
  int64_t released_ ABSL_GUARDED_BY(mutex_);          // the trainer is done with steps below
  int64_t next_ ABSL_GUARDED_BY(mutex_);              // the step that Next() returns next
  absl::Status error_ ABSL_GUARDED_BY(mutex_);        // of the earliest row that failed, `failed_`
  RowOfStep failed_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;  // last: they start when all else is ready
};

}  // namespace muster
