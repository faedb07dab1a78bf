// Durable keyed records: the seam between the coordinator and its database.
//
// The coordinator changes its state in memory at once and commits it; whatever the change allows (a reply, a command to
// a worker, a watch event) waits for the commit's callback. So nobody ever sees what a crash could take back.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

struct Record {
  std::string key;    // ASCII
  std::string value;  // any bytes
};

// Applied whole or not at all.
struct Batch {
  std::vector<Record> puts;
  std::vector<std::string> deletes;  // keys; those that are not there do no harm
};

// Owned by the coordinator; called on its loop.
class Store {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;

  virtual ~Store() = default;

  // Returns at once. Batches become durable in the order of the calls, and their callbacks run on the loop in that
  // order, never from within Commit. After one has failed all later ones fail too, so that what is stored is always a
  // prefix of what was committed: the coordinator has to end, saying why, and goes on from the prefix when it is
  // started again.
  virtual void Commit(Batch batch, Done done) = 0;

  // All records whose key begins with `prefix`, by key. Blocks: for the start, when there is nobody to wait for it.
  virtual absl::StatusOr<std::vector<Record>> Scan(absl::string_view prefix) = 0;
};

}  // namespace muster
