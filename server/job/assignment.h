// From a job's record to what its agents are told. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/worker.pb.h"
#include "server/store/records.pb.h"

namespace muster {

struct GangOptions {
  // From STOP until SIGKILL. Long enough for a step and a checkpoint.
  absl::Duration stop_grace = absl::Seconds(30);
  // For all ranks of an attempt to join their groups. CUDA contexts of a large node take half a minute.
  absl::Duration join_deadline = absl::Seconds(60);
  // For one collective. Longer than the slowest step: a rank waits in it for the slowest of its group.
  absl::Duration operation_deadline = absl::Seconds(120);
  // From the command to start until every rank trains; then the attempt has failed. Longer than join_deadline.
  absl::Duration start_timeout = absl::Seconds(150);
  // From KILL until a job no longer waits for a rank that does not end.
  absl::Duration kill_timeout = absl::Seconds(20);
};

using DesiredByWorker = std::map<std::string, std::vector<v1::Assignment>>;

// One assignment for each rank of the current attempt that is not confirmed dead. `rendezvous_address` is where rank
// 0's host is reached.
DesiredByWorker MakeAssignments(const server::JobRecord& record, const std::string& rendezvous_address,
                                const GangOptions& options);

}  // namespace muster
