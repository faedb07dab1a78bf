#include "worker/rank/reporter.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

namespace muster {

Reporter::Reporter(v1::RankService::StubInterface* stub, const v1::RankReport& identity, ReporterOptions options)
    : stub_(stub), identity_(identity), options_(options), thread_([this] { Run(); }) {}

Reporter::~Reporter() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    abandon_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  thread_.join();
}

void Reporter::Send(v1::RankReport report) {
  report.set_job_id(identity_.job_id());
  report.set_attempt(identity_.attempt());
  report.set_rank(identity_.rank());
  absl::MutexLock lock(&mutex_);
  if (closing_) return;
  report.set_sequence(next_sequence_++);
  queue_.push_back(std::move(report));
  Trim();
}

void Reporter::Trim() {
  const auto is_step = [](const v1::RankReport& report) { return report.has_step(); };
  if (std::count_if(queue_.begin(), queue_.end(), is_step) <= options_.most_steps) return;
  // The oldest that is not being written; the newest is behind it, as there are more than one.
  const auto oldest = std::find_if(std::next(queue_.begin()), queue_.end(), is_step);
  if (oldest != queue_.end()) queue_.erase(oldest);
}

bool Reporter::Flush(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  closing_ = true;
  const auto finished = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return finished_; };
  return mutex_.AwaitWithTimeout(absl::Condition(&finished), timeout);
}

void Reporter::Run() {
  const auto abandoned = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return abandon_; };
  while (!WriteStream()) {
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&abandoned), options_.retry)) break;
  }
  absl::MutexLock lock(&mutex_);
  finished_ = true;
}

bool Reporter::WriteStream() {
  grpc::ClientContext context;
  {
    absl::MutexLock lock(&mutex_);
    if (abandon_) return true;
    context_ = &context;
  }
  v1::ReportSummary summary;
  const auto writer = stub_->Report(&context, &summary);
  // The first report of each stream says that the rank is there, before it has anything to tell.
  v1::RankReport report = identity_;
  bool alive = writer->Write(report);
  while (alive && TakeNext(report)) {
    alive = writer->Write(report);
    absl::MutexLock lock(&mutex_);
    if (alive) queue_.pop_front();
  }
  if (alive) writer->WritesDone();
  const grpc::Status status = writer->Finish();
  absl::MutexLock lock(&mutex_);
  context_ = nullptr;
  return abandon_ || (alive && status.ok());
}

bool Reporter::TakeNext(v1::RankReport& report) {
  absl::MutexLock lock(&mutex_);
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !queue_.empty() || closing_; };
  mutex_.Await(absl::Condition(&ready));
  if (queue_.empty() || abandon_) return false;
  report = queue_.front();
  return true;
}

}  // namespace muster
