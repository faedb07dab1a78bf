// RankService on a Unix socket: takes the reports of this host's ranks and posts them to the loop, and tells the ranks
// what they are asked.
//
// Owned by the agent. gRPC's threads call in; the reports arrive on the loop, those of one rank in order.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/event_loop.h"
#include "muster/v1/worker.grpc.pb.h"
#include "worker/agent/command_board.h"

namespace grpc {
class Server;
}

namespace muster {

// The longest path that a Unix socket can have, without the final zero.
inline constexpr size_t kLongestSocketPath = 107;

class RankServiceServer {
 public:
  using OnReport = std::function<void(const v1::RankReport& report)>;  // on the loop

  // INVALID_ARGUMENT naming the state directory when the path is too long for a socket. A socket that is there is
  // replaced: the caller holds the lock of the directory.
  static absl::StatusOr<std::unique_ptr<RankServiceServer>> Start(EventLoop* loop, const std::string& path,
                                                                  OnReport on_report);
  // Breaks the open streams. Reports that were taken are already posted.
  ~RankServiceServer();

  CommandBoard& commands() { return *commands_; }

 private:
  class Service;

  RankServiceServer(std::unique_ptr<CommandBoard> commands, std::unique_ptr<Service> service);

  std::unique_ptr<CommandBoard> commands_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace muster
