#include "server/store/memory_store.h"

#include "absl/strings/match.h"

namespace muster {

void MemoryStore::Commit(Batch batch, Done done) { pending_.push_back({std::move(batch), std::move(done)}); }

absl::StatusOr<std::vector<Record>> MemoryStore::Scan(absl::string_view prefix) {
  std::vector<Record> found;
  for (auto entry = records_.lower_bound(std::string(prefix)); entry != records_.end(); ++entry) {
    if (!absl::StartsWith(entry->first, prefix)) break;
    found.push_back({entry->first, entry->second});
  }
  return found;
}

int MemoryStore::CommitPending() {
  int batches = 0;
  while (!pending_.empty()) {
    Pending next = std::move(pending_.front());
    pending_.pop_front();
    ++batches;
    if (failure_.ok()) {
      for (Record& put : next.batch.puts) records_[put.key] = std::move(put.value);
      for (const std::string& key : next.batch.deletes) records_.erase(key);
    }
    next.done(failure_);
  }
  return batches;
}

}  // namespace muster
