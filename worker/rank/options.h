// What a muster-rank is told on its command line, by its agent or by a person with --local. Constant after parsing.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace muster {

struct RankOptions {
  // A serialized muster.v1.Assignment: binary, or JSON where the name ends in .json.
  std::string assignment_file;

  // Where the agent takes reports, unix:PATH.
  std::string agent;

  // Where musterd brings the ranks together, HOST:PORT.
  std::string coordinator;

  // Data paths of the job are below this directory.
  std::string data_root = ".";

  // Checkpoints are below this directory, which all ranks must share.
  std::string checkpoint_root = ".";

  // The agent's lease (common/base/lease_file.h). Empty: there is none to keep.
  std::string lease_file;

  // Locked while this process lives, so that a restarted agent knows. Empty: no lock.
  std::string lock_file;

  // The address at which the other ranks reach this one.
  std::string host = "127.0.0.1";

  // A job file: the whole job in this process, its ranks as threads. Excludes all of the above but the roots.
  std::string local_file;

  // With local_file: go on from the newest checkpoint that an earlier such run left.
  bool resume = false;
};

// INVALID_ARGUMENT naming the flag that is missing or contradicts another.
absl::Status CheckRankOptions(const RankOptions& options);

}  // namespace muster
