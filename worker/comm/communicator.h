// How ranks of one group talk. One verb moves bytes, one waits; every reduction is built on them (gradient_reducer.h),
// so that the order of a sum is ours on every back-end and not a library's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

struct Transfer {
  enum class Direction { kSend, kReceive };
  Direction direction = Direction::kSend;
  int peer = 0;  // rank within the group, never our own
  void* data = nullptr;
  int64_t bytes = 0;

  bool sends() const { return direction == Direction::kSend; }
};

// Names one Exchange of one communicator, from 0 in the order of the calls.
using Ticket = int64_t;

// One group of one attempt. Implementations: local_communicator (threads of one process), gloo_communicator (processes,
// CPU), nccl_communicator (GPUs). Used by one thread at a time.
//
// The n-th send of a rank to a peer matches the n-th receive of that peer from it; sizes must be equal. Unequal sizes
// are an error, on some back-ends only when the deadline has passed.
//
// A world and all the groups split from it fail as one. After any error they are poisoned: every later call returns the
// first error, memory handed to it may still be written, and the process must end. A peer that fails, ends or is killed
// is UNAVAILABLE to the ranks that have an operation open to it; ranks that mean to end well call Barrier first.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual const std::string& name() const = 0;  // "world", "data/1", "pipeline/0-1"
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Starts all transfers together; none waits for another. The memory belongs to the communicator until the ticket is
  // waited for.
  virtual absl::StatusOr<Ticket> Exchange(absl::Span<const Transfer> transfers) = 0;

  // Until every transfer of the ticket is done, blocking no longer than the deadline given at construction. Each ticket
  // once, in any order. UNAVAILABLE when a peer is gone, DEADLINE_EXCEEDED when it is late; both name group, operation
  // and peer.
  virtual absl::Status Wait(Ticket ticket) = 0;

  // A group of some of this group's ranks, by their ranks here, in the new group's order. Every member calls with the
  // same list and name, and in the same order as its other Splits; others do not call. A name is used once in the life
  // of a world.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Split(const std::vector<int>& ranks,
                                                              const std::string& name) = 0;
};

// ---- collectives on it: blocking, deterministic ------------------------------------------------------------------

// all: size() x mine.size() bytes, in rank order.
absl::Status AllGather(Communicator& group, absl::Span<const std::byte> mine, absl::Span<std::byte> all);

// Element-wise fp64 sum over ranks, added in rank order; the same bits on every rank.
absl::Status AllReduceSum(Communicator& group, absl::Span<double> values);

absl::Status Barrier(Communicator& group);

}  // namespace muster
