#include "worker/agent/rank_service.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// One stream of one rank. Deletes itself in OnDone.
class ReportReader : public grpc::ServerReadReactor<v1::RankReport> {
 public:
  ReportReader(EventLoop* loop, const RankServiceServer::OnReport* on_report, v1::ReportSummary* summary)
      : loop_(loop), on_report_(on_report), summary_(summary) {
    StartRead(&report_);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    summary_->set_received(summary_->received() + 1);
    loop_->Post([on_report = on_report_, report = std::move(report_)] { (*on_report)(report); });
    report_.Clear();
    StartRead(&report_);
  }

  void OnDone() override { delete this; }

  EventLoop* const loop_;
  const RankServiceServer::OnReport* const on_report_;
  v1::ReportSummary* const summary_;
  v1::RankReport report_;
};

}  // namespace

class RankServiceServer::Service : public v1::RankService::CallbackService {
 public:
  Service(EventLoop* loop, CommandBoard* commands, OnReport on_report)
      : loop_(loop), commands_(commands), on_report_(std::move(on_report)) {}

  grpc::ServerReadReactor<v1::RankReport>* Report(grpc::CallbackServerContext* context,
                                                  v1::ReportSummary* summary) override {
    return new ReportReader(loop_, &on_report_, summary);
  }

  grpc::ServerWriteReactor<v1::RankCommands>* WatchCommands(grpc::CallbackServerContext* context,
                                                            const v1::WatchCommandsRequest* request) override {
    return commands_->Listen(RankKey::Of(*request));
  }

 private:
  EventLoop* const loop_;
  CommandBoard* const commands_;
  const OnReport on_report_;
};

RankServiceServer::RankServiceServer(std::unique_ptr<CommandBoard> commands, std::unique_ptr<Service> service)
    : commands_(std::move(commands)), service_(std::move(service)) {}

RankServiceServer::~RankServiceServer() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();  // streams of commands use the board until they are gone
}

absl::StatusOr<std::unique_ptr<RankServiceServer>> RankServiceServer::Start(EventLoop* loop, const std::string& path,
                                                                            OnReport on_report) {
  if (path.size() > kLongestSocketPath) {
    return absl::InvalidArgumentError(absl::StrCat("--state-dir: the socket ", path, " has a path of ", path.size(),
                                                   " bytes, and a Unix socket takes ", kLongestSocketPath,
                                                   "; choose a shorter directory"));
  }
  unlink(path.c_str());
  auto commands = std::make_unique<CommandBoard>();
  auto service = std::make_unique<Service>(loop, commands.get(), std::move(on_report));
  std::unique_ptr<RankServiceServer> server(new RankServiceServer(std::move(commands), std::move(service)));
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(server->service_.get());
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat("--state-dir: cannot listen on the socket ", path));
  }
  return server;
}

}  // namespace muster
