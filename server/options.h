// What an operator chooses for musterd. Filled from flags by main.cc, constant after.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/rpc/address.h"
#include "server/cluster/worker_registry.h"
#include "server/job/assignment.h"

namespace muster {

struct ServerOptions {
  // Where agents, ranks and clients connect; port 0 picks a free one. Traffic is not encrypted: beyond loopback only in
  // a network that you trust.
  HostPort listen{"127.0.0.1", 7070};

  // Where /metrics and /healthz are served; port 0 picks a free one.
  HostPort http{"127.0.0.1", 7071};

  // Everything that outlives musterd: jobs, events, workers. On a local disk that survives a reboot, never on a network
  // file system (SQLite's locks do not hold there).
  std::string state_dir = "musterd-state";

  // When a worker counts as lost, and when its ranks count as dead.
  LeaseOptions leases;

  // Deadlines of starting and stopping a gang.
  GangOptions gang;
};

// INVALID_ARGUMENT naming the flag that is wrong or contradicts another.
absl::Status CheckServerOptions(const ServerOptions& options);

}  // namespace muster
