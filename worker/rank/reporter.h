// Tells the agent what this rank does. Send never blocks and never fails: training does not wait for anybody who
// listens.
//
// A thread of its own writes to the stream. When it falls behind, old steps are left out; how the rank began,
// checkpoints, validations, the end and the newest step never are.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "muster/v1/worker.grpc.pb.h"

namespace grpc {
class ClientContext;
}

namespace muster {

struct ReporterOptions {
  int64_t most_steps = 1024;  // queued; an hour of an agent that does not listen costs half a megabyte
  absl::Duration retry = absl::Milliseconds(100);  // between tries to open a stream
};

class Reporter {
 public:
  // `identity` has job_id, attempt and rank; every report carries them. The stub outlives this.
  Reporter(v1::RankService::StubInterface* stub, const v1::RankReport& identity, ReporterOptions options = {});
  // What is not sent by then is lost: call Flush first.
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  // Any thread. Numbers the report.
  void Send(v1::RankReport report);

  // Until all is sent and the agent has answered, or `timeout` has passed. False in that case. Nothing is sent after
  // it.
  bool Flush(absl::Duration timeout);

 private:
  void Run();
  // Writes until the stream breaks (false) or everything is sent and no more comes (true).
  bool WriteStream();
  bool TakeNext(v1::RankReport& report);
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  v1::RankService::StubInterface* const stub_;
  const v1::RankReport identity_;
  const ReporterOptions options_;

  absl::Mutex mutex_;
  std::deque<v1::RankReport> queue_ ABSL_GUARDED_BY(mutex_);  // the front is being written
  int64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;                    // no more comes
  bool abandon_ ABSL_GUARDED_BY(mutex_) = false;                    // do not even send what is there
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;                   // the thread is done
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the open stream

  std::thread thread_;  // last
};

}  // namespace muster
