// A communicator for ranks that are processes, over TCP by Gloo. All groups of a rank share one mesh of connections
// (gloo_mesh.h); a Split makes a view of it and costs no socket.
//
// Gloo's device thread moves the bytes, between the sockets and the memory given to Exchange and nowhere else. Large
// transfers do not wait for a copy, and a send is done when the kernel has its bytes.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/comm/communicator.h"
#include "worker/comm/rendezvous_store.h"

namespace muster {

struct GlooOptions {
  int rank = 0;
  int size = 1;

  // Address or name of this host at which all peers reach it. Ports are bound there, chosen by the kernel, one for each
  // peer. Where all ranks are on one host, leave the loopback address: nobody else can then connect.
  std::string host = "127.0.0.1";

  // Network interface to use instead of `host`, as "eth0": for hosts whose names resolve to another network.
  std::string interface;

  // Until all ranks have appeared, connected and passed a first barrier. Three quarters of it are for appearing, so it
  // should be longer than the slowest start of a process.
  absl::Duration setup_deadline = absl::Seconds(60);

  // The longest that one Wait blocks. Longer than the longest step of a peer between two operations, which a checkpoint
  // may stretch.
  absl::Duration operation_deadline = absl::Seconds(60);
};

// The world of one attempt. Blocks until every rank has called it, setup_deadline at most. The store is not used
// afterwards. DEADLINE_EXCEEDED or UNAVAILABLE name the rank that is missing; INVALID_ARGUMENT where the host or the
// interface is not ours. Ignores SIGPIPE in this process: Gloo writes to sockets whose peers may be gone.
absl::StatusOr<std::unique_ptr<Communicator>> MakeGlooCommunicator(const GlooOptions& options, RendezvousStore& store);

}  // namespace muster
