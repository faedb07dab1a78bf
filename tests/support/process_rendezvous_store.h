// A RendezvousStore for ranks that a test forks: it lies in memory that parent and children share. Make it before the
// fork.
#pragma once

#include <pthread.h>

#include "worker/comm/rendezvous_store.h"

namespace muster {

// Thread-safe and process-safe. A process killed within a call would leave the others locked out, so kill none before
// its world is up.
class ProcessRendezvousStore : public RendezvousStore {
 public:
  ProcessRendezvousStore();
  ~ProcessRendezvousStore() override;
  ProcessRendezvousStore(const ProcessRendezvousStore&) = delete;
  ProcessRendezvousStore& operator=(const ProcessRendezvousStore&) = delete;

  absl::Status Set(absl::string_view key, absl::string_view value) override;
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override;

 private:
  struct Shared;
  Shared* const shared_;
};

}  // namespace muster
