// What each rank of this host is asked beside training, and the ranks that listen: a rank opens a stream and gets its
// commands as they stand, and again when they change.
//
// Owned by RankServiceServer. Thread-safe: the loop sets, gRPC's threads listen.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "muster/v1/worker.grpc.pb.h"
#include "worker/agent/rank_key.h"

namespace muster {

class CommandBoard {
 public:
  void Set(const RankKey& rank, const v1::RankCommands& commands);
  // The rank has ended.
  void Forget(const RankKey& rank);

  // One rank's stream, which gRPC owns: it deletes itself. The board outlives it.
  grpc::ServerWriteReactor<v1::RankCommands>* Listen(const RankKey& rank);

 private:
  class Stream;

  void Close(const RankKey& rank, Stream* stream);

  absl::Mutex mutex_;
  std::map<RankKey, v1::RankCommands> commands_ ABSL_GUARDED_BY(mutex_);
  std::multimap<RankKey, Stream*> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
