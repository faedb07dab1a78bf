// What an operator chooses for one muster-worker. Filled from flags by main.cc, checked by CheckAgentOptions, constant
// after.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"

namespace muster {

struct AgentOptions {
  // Where musterd listens. It need not be up: the agent keeps trying.
  HostPort coordinator;

  // Unique in the cluster. The coordinator refuses a second agent of this name while the first holds its lease.
  std::string name;

  // Ranks that may run here at once, each on one share of the CPU. More slots than cores let ranks take turns.
  int64_t slots = 1;

  // Bytes that one rank may use, reported to the planner and enforced on the process.
  // All slots together must fit the host.
  int64_t slot_memory_bytes = int64_t{512} << 20;

  // Where /metrics and /healthz are served; port 0 picks a free one.
  HostPort http{"127.0.0.1", 7072};

  // The host by which ranks on other hosts reach the ranks of this one.
  std::string address;

  // Relative data paths of jobs are below this directory.
  std::string data_root;

  // Checkpoints are below this directory, which all workers of a job must share. Nothing outside it is ever deleted.
  std::string checkpoint_root;

  // Locks, the lease, assignments and logs. One agent a directory; short, as a socket's path has at most 107 bytes.
  std::string state_dir;

  // The muster-rank to run.
  std::string rank_program;

  // Bytes of log kept for each rank, in two files; the older half is dropped when both are full.
  int64_t log_bytes_per_rank = int64_t{16} << 20;

  // Bytes of log kept in all; whole attempts are dropped, oldest first, when a new one begins.
  int64_t log_bytes_total = int64_t{1} << 30;

  // From SIGTERM to the agent until ranks that have not written their checkpoint are killed.
  absl::Duration shutdown_grace = absl::Seconds(60);

  // How long a job's series stay in /metrics after its last rank here ended, so that its last values are scraped.
  absl::Duration metrics_retention = absl::Minutes(2);
};

// INVALID_ARGUMENT naming the flag that is wrong.
absl::Status CheckAgentOptions(const AgentOptions& options);

// Fills what depends on the host: name, address, rank_program, state_dir. `program` is argv[0]'s resolved path.
void FillAgentDefaults(const std::string& program, AgentOptions& options);

}  // namespace muster
