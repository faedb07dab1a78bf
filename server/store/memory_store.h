// A store that lives as long as a test, and that commits when the test says so: what must wait for the commit is then
// seen to.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/store/store.h"

namespace muster {

// Thread-compatible.
class MemoryStore : public Store {
 public:
  using Records = std::map<std::string, std::string>;

  explicit MemoryStore(Records records = {}) : records_(std::move(records)) {}

  void Commit(Batch batch, Done done) override;
  absl::StatusOr<std::vector<Record>> Scan(absl::string_view prefix) override;

  // Commits all that waits, and what its callbacks commit in turn. Returns how many batches that were.
  int CommitPending();

  // Every later commit fails with this.
  void FailWith(absl::Status failure) { failure_ = std::move(failure); }

  // What a crash at this moment would leave.
  const Records& records() const { return records_; }

 private:
  struct Pending {
    Batch batch;
    Done done;
  };

  Records records_;
  std::deque<Pending> pending_;
  absl::Status failure_;
};

}  // namespace muster
