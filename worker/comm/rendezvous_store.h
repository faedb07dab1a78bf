// The key-value seam through which ranks that cannot talk yet find each other: Gloo's addresses, NCCL's unique id.
//
// An implementation is one namespace per (job, attempt): values of an older attempt are never seen. worker/rank brings
// one over gRPC, tests/support/memory_rendezvous_store.h one for threads. Thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;

  // Each key once: ALREADY_EXISTS if it holds another value (two ranks with one number); the same value again is no
  // error, so that a call may be repeated. Values are bytes, a few kilobytes at most.
  virtual absl::Status Set(absl::string_view key, absl::string_view value) = 0;

  // Blocks until the key has a value. DEADLINE_EXCEEDED after `timeout`; any other error says that the store itself is
  // out of reach.
  virtual absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) = 0;
};

}  // namespace muster
