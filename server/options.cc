#include "server/options.h"

#include "absl/strings/str_cat.h"

namespace muster {

absl::Status CheckServerOptions(const ServerOptions& options) {
  const LeaseOptions& leases = options.leases;
  if (options.state_dir.empty()) return absl::InvalidArgumentError("--state-dir: names no directory");
  if (leases.heartbeat_interval < absl::Milliseconds(10)) {
    return absl::InvalidArgumentError("--heartbeat-interval: must be at least 0.01 seconds");
  }
  if (leases.lease < 2 * leases.heartbeat_interval) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--lease: ", absl::FormatDuration(leases.lease), " is shorter than two heartbeats of ",
        absl::FormatDuration(leases.heartbeat_interval), " (--heartbeat-interval): one late message would do"));
  }
  if (leases.fence_after < leases.lease) {
    return absl::InvalidArgumentError(absl::StrCat("--fence-after: ", absl::FormatDuration(leases.fence_after),
                                                   " is shorter than --lease, ", absl::FormatDuration(leases.lease)));
  }
  return absl::OkStatus();
}

}  // namespace muster
