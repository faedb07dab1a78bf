#include "common/rpc/address.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/listen_probe.h"

namespace muster {
namespace {

constexpr int kKeepaliveMilliseconds = 10'000;
constexpr int kKeepaliveTimeoutMilliseconds = 5'000;

}  // namespace

std::string HostPort::ToString() const {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

bool HostPort::IsLoopback() const { return host == "localhost" || host == "::1" || absl::StartsWith(host, "127."); }

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text, absl::string_view flag) {
  HostPort result;
  const size_t colon = text.rfind(':');
  const bool split = colon != absl::string_view::npos && colon > 0;
  if (!split || !absl::SimpleAtoi(text.substr(colon + 1), &result.port) || result.port < 0 || result.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": \"", text, "\" is not HOST:PORT with a port of 0 to 65535, as in 127.0.0.1:7070"));
  }
  absl::string_view host = text.substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) host = host.substr(1, host.size() - 2);
  result.host = std::string(host);
  return result;
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A daemon that comes back after a crash is found within this, not within gRPC's default of two minutes.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  // Channels to one address would share a connection, and one's failure would be the other's.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Proxies of the environment are for the outside, not for a cluster's own traffic.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

absl::StatusOr<std::unique_ptr<grpc::Server>> StartServer(const HostPort& address, absl::string_view flag,
                                                          const std::function<void(grpc::ServerBuilder&)>& add_services,
                                                          int* bound_port) {
  // gRPC says only that it failed; the kernel says why.
  if (absl::Status probe = ProbeListen(address.host, address.port); !probe.ok()) {
    return absl::Status(probe.code(), absl::StrCat(flag, ": ", probe.message()));
  }
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveTimeoutMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddListeningPort(address.ToString(), grpc::InsecureServerCredentials(), bound_port);
  add_services(builder);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || *bound_port == 0) {
    return absl::UnavailableError(absl::StrCat(flag, ": cannot listen on ", address.ToString()));
  }
  return server;
}

}  // namespace muster
