// Addresses as people write them, HOST:PORT, and the channels and server ports made from them. Free functions; any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grpc {
class Channel;
class Server;
class ServerBuilder;
}  // namespace grpc

namespace muster {

struct HostPort {
  std::string host;
  int port = 0;

  std::string ToString() const;  // brackets around an IPv6 host
  bool IsLoopback() const;
};

// INVALID_ARGUMENT, naming `flag`, for anything but HOST:PORT with a port of 0 to 65535.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text, absl::string_view flag);

// Pings a silent connection every 10 s and gives it up after 5 s more: the server's side allows the same.
// `address` is HOST:PORT or unix:PATH.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address);

// Listens on `address` after `add_services` was given the builder. Port 0 picks a free one; `bound_port` has the real
// one. Two servers never share a port. UNAVAILABLE that names address, `flag` and what to do when the port is taken.
absl::StatusOr<std::unique_ptr<grpc::Server>> StartServer(const HostPort& address, absl::string_view flag,
                                                          const std::function<void(grpc::ServerBuilder&)>& add_services,
                                                          int* bound_port);

}  // namespace muster
