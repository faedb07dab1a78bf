// How a rank process is started: its directory in the agent's state, its command line, its environment and its limits.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/worker.pb.h"
#include "worker/agent/child_process.h"
#include "worker/agent/rank_key.h"

namespace muster {

// The same for every rank of one agent.
struct RankCommandOptions {
  std::string program;        // muster-rank
  std::string state_dir;      // ranks/ is made below
  std::string agent_address;  // unix:PATH of RankService
  std::string coordinator;    // HOST:PORT
  std::string data_root;
  std::string checkpoint_root;
  std::string lease_file;
  std::string address;              // the host by which other ranks reach this one
  int64_t device_memory_bytes = 0;  // what one rank may use, unless its job asks for less
};

// Address space that a rank reserves and never touches (stacks of the libraries' threads), granted on top of its
// memory: RLIMIT_DATA counts it. A muster-rank has 13 threads on 2 cores, so 26 MiB of stacks; gRPC brings more on
// larger hosts.
inline constexpr int64_t kRankStackBytes = int64_t{2} << 20;
inline constexpr int64_t kRankReservedBytes = int64_t{96} << 20;

// STATE/ranks/JOB.ATTEMPT.RANK, with the files assignment.binpb, lock and, when it has ended, exit.binpb.
std::string RankDirectory(const std::string& state_dir, const RankKey& rank);

// What the rank may use: the smaller of the device's memory and what its job asks for.
int64_t RankMemoryBytes(const RankCommandOptions& options, const v1::Assignment& assignment);

// The program's path by PATH; empty where there is none.
std::string FindProgram(const std::string& name);

// Makes the rank's directory with its assignment, and the command that runs it.
absl::StatusOr<ChildCommand> PrepareRank(const RankCommandOptions& options, const v1::Assignment& assignment);

}  // namespace muster
