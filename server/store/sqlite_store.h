// The store on disk: one SQLite database in the state directory, in WAL mode with synchronous=FULL.
//
// A thread of its own does the writing. It takes all batches that wait into one transaction (group commit), so a burst
// of changes costs one fsync; then it posts the callbacks. The directory is locked against a second musterd for as long
// as the store lives.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/file_lock.h"
#include "server/store/store.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster {

struct SqliteStoreOptions {
  // Made when missing. Holds muster.db and musterd.lock.
  std::string directory;
  // Runs a task on the coordinator's loop. Thread-safe.
  std::function<void(absl::AnyInvocable<void()>)> post;
  // Told the seconds that each transaction took, on the store's thread. May be empty.
  std::function<void(double)> on_commit_seconds;
};

// Thread-safe.
class SqliteStore : public Store {
 public:
  // FAILED_PRECONDITION when another musterd holds the directory or a newer one wrote it; DATA_LOSS when the database
  // is damaged; PERMISSION_DENIED or RESOURCE_EXHAUSTED when the directory cannot be written. Each says what to do.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(SqliteStoreOptions options);

  // Commits what waits.
  ~SqliteStore() override;

  void Commit(Batch batch, Done done) override;
  absl::StatusOr<std::vector<Record>> Scan(absl::string_view prefix) override;

 private:
  struct Pending {
    Batch batch;
    Done done;
  };

  explicit SqliteStore(SqliteStoreOptions options) : options_(std::move(options)) {}

  absl::Status LockDirectory();
  absl::Status OpenDatabase();
  absl::Status CheckSchema() ABSL_EXCLUSIVE_LOCKS_REQUIRED(database_mutex_);
  absl::Status Execute(const char* sql) ABSL_EXCLUSIVE_LOCKS_REQUIRED(database_mutex_);
  absl::StatusOr<int64_t> ReadNumber(const char* sql) ABSL_EXCLUSIVE_LOCKS_REQUIRED(database_mutex_);
  absl::Status Error(int code, absl::string_view doing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(database_mutex_);
  void WriterLoop();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex_) { return stopping_ || !queue_.empty(); }
  // DATA_LOSS when the database is no longer where it was opened: what is written to it would be gone with this
  // process.
  absl::Status CheckInPlace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(database_mutex_);
  absl::Status WriteGroup(const std::vector<Pending>& group);
  absl::Status WriteBatch(const Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(database_mutex_);

  // Constant after Open.
  const SqliteStoreOptions options_;
  std::optional<FileLock> lock_;
  std::thread writer_;

  absl::Mutex database_mutex_;
  sqlite3* database_ ABSL_GUARDED_BY(database_mutex_) = nullptr;
  sqlite3_stmt* put_ ABSL_GUARDED_BY(database_mutex_) = nullptr;
  sqlite3_stmt* delete_ ABSL_GUARDED_BY(database_mutex_) = nullptr;

  absl::Mutex queue_mutex_;
  std::deque<Pending> queue_ ABSL_GUARDED_BY(queue_mutex_);
  bool stopping_ ABSL_GUARDED_BY(queue_mutex_) = false;
};

}  // namespace muster
