#include "server/store/sqlite_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// In the database's header: "Mstr". Another program's database is not taken for ours.
constexpr int64_t kApplicationId = 0x4d737472;
// Grows with every change that an older musterd cannot read.
constexpr int64_t kSchemaVersion = 1;
// Batches of one transaction at the most: a reply never waits for more than this many strangers.
constexpr size_t kGroupBatches = 256;

// `status` of a file operation, as the user of --state-dir should read it.
absl::Status DirectoryError(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("--state-dir: ", status.message(),
                                                  status.code() == absl::StatusCode::kResourceExhausted
                                                      ? "; make room on that file system"
                                                      : "; name a directory that musterd may write"));
}

// The first key that does not begin with `prefix`.
std::string EndOfPrefix(absl::string_view prefix) {
  std::string end(prefix);
  if (!end.empty()) ++end.back();
  return end;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(SqliteStoreOptions options) {
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(options)));
  MUSTER_RETURN_IF_ERROR(store->LockDirectory());
  MUSTER_RETURN_IF_ERROR(store->OpenDatabase());
  store->writer_ = std::thread([raw = store.get()] { raw->WriterLoop(); });
  return store;
}

SqliteStore::~SqliteStore() {
  {
    absl::MutexLock lock(&queue_mutex_);
    stopping_ = true;
  }
  if (writer_.joinable()) writer_.join();
  {
    absl::MutexLock lock(&database_mutex_);
    sqlite3_finalize(put_);
    sqlite3_finalize(delete_);
    sqlite3_close(database_);
  }
}

absl::Status SqliteStore::LockDirectory() {
  if (absl::Status made = MakeDirectories(options_.directory); !made.ok()) return DirectoryError(made);
  absl::StatusOr<FileLock> lock = FileLock::Acquire(absl::StrCat(options_.directory, "/musterd.lock"));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(absl::StrCat("--state-dir: ", options_.directory,
                                                      " is in use by another musterd: ", lock.status().message(),
                                                      "; stop that one, or name another directory"));
  }
  if (!lock.ok()) return DirectoryError(lock.status());
  lock_.emplace(*std::move(lock));
  return absl::OkStatus();
}

absl::Status SqliteStore::OpenDatabase() {
  absl::MutexLock lock(&database_mutex_);
  const std::string path = absl::StrCat(options_.directory, "/muster.db");
  const int code = sqlite3_open_v2(path.c_str(), &database_,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (code != SQLITE_OK) return Error(code, "open");
  sqlite3_busy_timeout(database_, 2000);
  MUSTER_RETURN_IF_ERROR(CheckSchema());
  MUSTER_RETURN_IF_ERROR(Execute("PRAGMA journal_mode=WAL"));
  MUSTER_RETURN_IF_ERROR(Execute("PRAGMA synchronous=FULL"));
  MUSTER_RETURN_IF_ERROR(
      Execute("CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"));
  MUSTER_RETURN_IF_ERROR(Execute(absl::StrCat("PRAGMA application_id=", kApplicationId).c_str()));
  MUSTER_RETURN_IF_ERROR(Execute(absl::StrCat("PRAGMA user_version=", kSchemaVersion).c_str()));
  const char* put = "INSERT OR REPLACE INTO records (key, value) VALUES (?1, ?2)";
  int prepared = sqlite3_prepare_v2(database_, put, -1, &put_, nullptr);
  if (prepared == SQLITE_OK) {
    prepared = sqlite3_prepare_v2(database_, "DELETE FROM records WHERE key = ?1", -1, &delete_, nullptr);
  }
  return prepared == SQLITE_OK ? absl::OkStatus() : Error(prepared, "prepare");
}

absl::Status SqliteStore::CheckSchema() {
  MUSTER_ASSIGN_OR_RETURN(const int64_t application, ReadNumber("PRAGMA application_id"));
  MUSTER_ASSIGN_OR_RETURN(const int64_t version, ReadNumber("PRAGMA user_version"));
  MUSTER_ASSIGN_OR_RETURN(const int64_t tables, ReadNumber("SELECT count(*) FROM sqlite_master"));
  if (tables == 0) return absl::OkStatus();
  if (application != kApplicationId) {
    return absl::FailedPreconditionError(absl::StrCat("--state-dir: ", options_.directory,
                                                      "/muster.db belongs to another program; name another directory"));
  }
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("--state-dir: ", options_.directory, "/muster.db was written by a newer musterd (schema ", version,
                     ", this one knows ", kSchemaVersion, "); start the newer version"));
  }
  // Reads every page once; a coordinator's database has some megabytes.
  sqlite3_stmt* check = nullptr;
  int code = sqlite3_prepare_v2(database_, "PRAGMA quick_check(1)", -1, &check, nullptr);
  const absl::Cleanup finalize = [&check] { sqlite3_finalize(check); };
  if (code == SQLITE_OK) code = sqlite3_step(check);
  if (code != SQLITE_ROW) return Error(code, "check");
  const auto* verdict = reinterpret_cast<const char*>(sqlite3_column_text(check, 0));
  if (verdict != nullptr && std::strcmp(verdict, "ok") == 0) return absl::OkStatus();
  // SQLite has no error to tell here: the check itself succeeded.
  return absl::DataLossError(absl::StrCat("--state-dir: ", options_.directory, "/muster.db is damaged (",
                                          absl::StrReplaceAll(verdict == nullptr ? "" : verdict, {{"\n", " "}}),
                                          "): restore it from a copy, or move it away to begin with no jobs"));
}

absl::Status SqliteStore::Execute(const char* sql) {
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, "write");
}

absl::StatusOr<int64_t> SqliteStore::ReadNumber(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr);
  const absl::Cleanup finalize = [&statement] { sqlite3_finalize(statement); };
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  if (code != SQLITE_ROW) return Error(code, "read");
  return sqlite3_column_int64(statement, 0);
}

absl::Status SqliteStore::Error(int code, absl::string_view doing) {
  const std::string what = absl::StrCat("--state-dir: cannot ", doing, " ", options_.directory,
                                        "/muster.db: ", database_ ? sqlite3_errmsg(database_) : sqlite3_errstr(code));
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(absl::StrCat(
          what, "; make room on that file system and start musterd again: nothing that was acknowledged is lost"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat(what, "; the file is damaged: restore it from a copy, or move it away to begin with no jobs"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::FailedPreconditionError(absl::StrCat(what, "; another program holds it open: close that one"));
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return absl::PermissionDeniedError(absl::StrCat(what, "; give musterd the right to write it"));
    default:
      return absl::InternalError(absl::StrCat(what, " (SQLite ", code, ")"));
  }
}

void SqliteStore::Commit(Batch batch, Done done) {
  absl::MutexLock lock(&queue_mutex_);
  queue_.push_back({std::move(batch), std::move(done)});
}

absl::StatusOr<std::vector<Record>> SqliteStore::Scan(absl::string_view prefix) {
  absl::MutexLock lock(&database_mutex_);
  sqlite3_stmt* scan = nullptr;
  const char* sql = prefix.empty() ? "SELECT key, value FROM records ORDER BY key"
                                   : "SELECT key, value FROM records WHERE key >= ?1 AND key < ?2 ORDER BY key";
  int code = sqlite3_prepare_v2(database_, sql, -1, &scan, nullptr);
  const absl::Cleanup finalize = [&scan] { sqlite3_finalize(scan); };
  if (code != SQLITE_OK) return Error(code, "read");
  const std::string end = EndOfPrefix(prefix);
  if (!prefix.empty()) {
    sqlite3_bind_text(scan, 1, prefix.data(), static_cast<int>(prefix.size()), SQLITE_TRANSIENT);
    sqlite3_bind_text(scan, 2, end.data(), static_cast<int>(end.size()), SQLITE_TRANSIENT);
  }
  std::vector<Record> records;
  while ((code = sqlite3_step(scan)) == SQLITE_ROW) {
    const auto* key = reinterpret_cast<const char*>(sqlite3_column_text(scan, 0));
    const auto* value = static_cast<const char*>(sqlite3_column_blob(scan, 1));
    const int bytes = sqlite3_column_bytes(scan, 1);
    records.push_back({key, std::string(value == nullptr ? "" : value, bytes)});
  }
  if (code != SQLITE_DONE) return Error(code, "read");
  return records;
}

void SqliteStore::WriterLoop() {
  absl::Status failure;  // the first one, for ever
  for (;;) {
    std::vector<Pending> group;
    {
      absl::MutexLock lock(&queue_mutex_);
      queue_mutex_.Await(absl::Condition(this, &SqliteStore::HasWork));
      if (queue_.empty()) return;
      const size_t taken = std::min(queue_.size(), kGroupBatches);
      std::move(queue_.begin(), queue_.begin() + taken, std::back_inserter(group));
      queue_.erase(queue_.begin(), queue_.begin() + taken);
    }
    if (failure.ok()) failure = WriteGroup(group);
    for (Pending& pending : group) {
      options_.post([done = std::move(pending.done), failure]() mutable { done(failure); });
    }
  }
}

absl::Status SqliteStore::WriteGroup(const std::vector<Pending>& group) {
  absl::MutexLock lock(&database_mutex_);
  const auto begin = std::chrono::steady_clock::now();
  MUSTER_RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  absl::Status written;
  for (const Pending& pending : group) {
    written = WriteBatch(pending.batch);
    if (!written.ok()) break;
  }
  if (written.ok()) written = Execute("COMMIT");
  if (written.ok()) written = CheckInPlace();
  if (!written.ok()) {
    sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
    return written;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (options_.on_commit_seconds) options_.on_commit_seconds(seconds.count());
  return absl::OkStatus();
}

absl::Status SqliteStore::CheckInPlace() {
  int moved = 0;
  sqlite3_file_control(database_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("--state-dir: ", options_.directory,
                   " was deleted or moved while musterd ran; put it back, or start with a new one"));
}

absl::Status SqliteStore::WriteBatch(const Batch& batch) {
  for (const Record& put : batch.puts) {
    sqlite3_bind_text(put_, 1, put.key.data(), static_cast<int>(put.key.size()), SQLITE_STATIC);
    sqlite3_bind_blob64(put_, 2, put.value.data(), put.value.size(), SQLITE_STATIC);
    const int code = sqlite3_step(put_);
    sqlite3_reset(put_);
    if (code != SQLITE_DONE) return Error(code, "write");
  }
  for (const std::string& key : batch.deletes) {
    sqlite3_bind_text(delete_, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    const int code = sqlite3_step(delete_);
    sqlite3_reset(delete_);
    if (code != SQLITE_DONE) return Error(code, "write");
  }
  return absl::OkStatus();
}

}  // namespace muster
