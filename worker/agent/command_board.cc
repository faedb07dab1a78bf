#include "worker/agent/command_board.h"

#include <utility>

namespace muster {

// Writes one message at a time; of those that come meanwhile only the newest is kept, as each says all.
class CommandBoard::Stream : public grpc::ServerWriteReactor<v1::RankCommands> {
 public:
  Stream(CommandBoard* board, RankKey rank) : board_(board), rank_(std::move(rank)) {}

  void Offer(const v1::RankCommands& commands) {
    absl::MutexLock lock(&mutex_);
    next_ = commands;
    waiting_ = true;
    WriteNext();
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (ok) WriteNext();  // else OnCancel follows
  }

  void OnCancel() override { Finish(grpc::Status::CANCELLED); }

  void OnDone() override {
    board_->Close(rank_, this);
    delete this;
  }

 private:
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || !std::exchange(waiting_, false)) return;
    writing_ = true;
    being_written_ = next_;
    StartWrite(&being_written_);
  }

  CommandBoard* const board_;
  const RankKey rank_;

  absl::Mutex mutex_;
  v1::RankCommands next_ ABSL_GUARDED_BY(mutex_);
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  v1::RankCommands being_written_;  // gRPC's while writing_
};

void CommandBoard::Set(const RankKey& rank, const v1::RankCommands& commands) {
  absl::MutexLock lock(&mutex_);
  v1::RankCommands& known = commands_[rank];
  if (known.SerializeAsString() == commands.SerializeAsString()) return;
  known = commands;
  const auto range = streams_.equal_range(rank);
  for (auto stream = range.first; stream != range.second; ++stream) stream->second->Offer(commands);
}

void CommandBoard::Forget(const RankKey& rank) {
  absl::MutexLock lock(&mutex_);
  commands_.erase(rank);
}

grpc::ServerWriteReactor<v1::RankCommands>* CommandBoard::Listen(const RankKey& rank) {
  absl::MutexLock lock(&mutex_);
  auto* stream = new Stream(this, rank);
  streams_.emplace(rank, stream);
  stream->Offer(commands_[rank]);
  return stream;
}

void CommandBoard::Close(const RankKey& rank, Stream* stream) {
  absl::MutexLock lock(&mutex_);
  const auto range = streams_.equal_range(rank);
  for (auto open = range.first; open != range.second; ++open) {
    if (open->second != stream) continue;
    streams_.erase(open);
    return;
  }
}

}  // namespace muster
