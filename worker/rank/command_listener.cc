#include "worker/rank/command_listener.h"

#include <grpcpp/grpcpp.h>

#include <utility>

namespace muster {

CommandListener::CommandListener(v1::RankService::StubInterface* stub, const v1::Assignment& assignment,
                                 CommandEvents events, absl::Duration retry)
    : stub_(stub), events_(std::move(events)), retry_(retry), done_(assignment.commands()) {
  request_.set_job_id(assignment.job_id());
  request_.set_attempt(assignment.attempt());
  request_.set_rank(assignment.rank());
  thread_ = std::thread([this] { Run(); });
}

CommandListener::~CommandListener() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  thread_.join();
}

void CommandListener::Run() {
  const auto closing = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closing_; };
  while (true) {
    Listen();
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&closing), retry_)) return;
  }
}

void CommandListener::Listen() {
  grpc::ClientContext context;
  {
    absl::MutexLock lock(&mutex_);
    if (closing_) return;
    context_ = &context;
  }
  const auto reader = stub_->WatchCommands(&context, request_);
  v1::RankCommands commands;
  while (reader->Read(&commands)) Take(commands);
  reader->Finish();
  absl::MutexLock lock(&mutex_);
  context_ = nullptr;
}

void CommandListener::Take(const v1::RankCommands& commands) {
  if (commands.checkpoint() > done_.checkpoint()) events_.on_checkpoint();
  if (commands.trace() > done_.trace()) events_.on_trace(commands.trace_steps());
  // A stream may begin before the agent knows of this rank's requests: numbers only grow.
  if (commands.checkpoint() >= done_.checkpoint() && commands.trace() >= done_.trace()) done_ = commands;
}

}  // namespace muster
