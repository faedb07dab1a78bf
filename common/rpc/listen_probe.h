// Why a port cannot be listened on: servers of libraries do not say. Free function; any thread.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace muster {

// OK when a listening socket can be made on host:port now. UNAVAILABLE when the port is in use, PERMISSION_DENIED for a
// privileged port, INVALID_ARGUMENT for an address that is not this host's; each names the address and what to do.
absl::Status ProbeListen(const std::string& host, int port);

}  // namespace muster
