// What this host offers. Read once, when the agent starts.
#pragma once

#include "muster/v1/cluster.pb.h"
#include "worker/agent/options.h"

namespace muster {

v1::Inventory MakeInventory(const AgentOptions& options, const std::string& version, const HostPort& metrics);

}  // namespace muster
