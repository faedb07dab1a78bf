#include "server/store/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/file.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

SqliteStoreOptions MakeOptions(const std::string& directory) {
  SqliteStoreOptions options;
  options.directory = directory;
  options.post = [](absl::AnyInvocable<void()> task) { task(); };
  return options;
}

// Commits and waits.
absl::Status CommitNow(SqliteStore& store, Batch batch) {
  absl::Notification done;
  absl::Status status;
  store.Commit(std::move(batch), [&](absl::Status committed) {
    status = committed;
    done.Notify();
  });
  done.WaitForNotification();
  return status;
}

TEST(SqliteStoreTest, WhatIsCommittedIsThereWhenOpenedAgain) {
  const TemporaryDirectory directory;
  {
    const auto store = SqliteStore::Open(MakeOptions(directory.path() + "/new/state"));
    ASSERT_TRUE(store.ok()) << store.status();
    const std::string bytes("\0binary\xff", 8);
    ASSERT_TRUE(CommitNow(**store, {{{"job/1", bytes}, {"job/2", "b"}, {"jobs", "c"}, {"event/1", "d"}}, {}}).ok());
    ASSERT_TRUE(CommitNow(**store, {{{"job/2", "changed"}}, {"event/1", "never there"}}).ok());
  }
  const auto store = SqliteStore::Open(MakeOptions(directory.path() + "/new/state"));
  ASSERT_TRUE(store.ok()) << store.status();
  const auto jobs = (*store)->Scan("job/");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].value.size(), 8u);
  EXPECT_EQ((*jobs)[1].value, "changed");
  EXPECT_EQ((*store)->Scan("event/")->size(), 0u);
  EXPECT_EQ((*store)->Scan("")->size(), 3u);
}

TEST(SqliteStoreTest, CallbacksRunInTheOrderOfTheCalls) {
  const TemporaryDirectory directory;
  std::vector<int> order;  // only the store's thread writes it until the store is gone
  {
    const auto store = SqliteStore::Open(MakeOptions(directory.path()));
    ASSERT_TRUE(store.ok()) << store.status();
    for (int i = 0; i < 1000; ++i) {
      (*store)->Commit({{{"key", absl::StrCat(i)}}, {}}, [&order, i](absl::Status) { order.push_back(i); });
    }
  }
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[i], i);
}

TEST(SqliteStoreTest, ManyCommitsShareATransaction) {
  const TemporaryDirectory directory;
  std::atomic<int> transactions{0};
  SqliteStoreOptions options = MakeOptions(directory.path());
  absl::Notification go;
  options.post = [](absl::AnyInvocable<void()> task) { task(); };
  options.on_commit_seconds = [&transactions](double) { ++transactions; };
  {
    const auto store = SqliteStore::Open(std::move(options));
    ASSERT_TRUE(store.ok()) << store.status();
    // While the first one's callback holds the writer up, the others queue.
    (*store)->Commit({{{"first", ""}}, {}}, [&go](absl::Status) { go.WaitForNotification(); });
    for (int i = 0; i < 200; ++i) (*store)->Commit({{{absl::StrCat(i), ""}}, {}}, [](absl::Status) {});
    go.Notify();
  }
  EXPECT_LE(transactions, 3);
}

TEST(SqliteStoreTest, AWriterKilledAtAnyMomentLeavesAPrefixWithAllThatWasAcknowledged) {
  const TemporaryDirectory directory;
  for (int round = 0; round < 5; ++round) {
    const std::string state = absl::StrCat(directory.path(), "/", round);
    int acknowledged[2];
    ASSERT_EQ(pipe(acknowledged), 0);
    const pid_t writer = fork();
    if (writer == 0) {
      auto store = SqliteStore::Open(MakeOptions(state));
      for (int i = 0; store.ok(); ++i) {
        // Two records that must never be seen apart.
        Batch batch{{{absl::StrCat("number/", absl::Dec(i, absl::kZeroPad8)), ""}, {"count", absl::StrCat(i + 1)}}, {}};
        (*store)->Commit(std::move(batch), [&acknowledged, i](absl::Status committed) {
          if (!committed.ok() || write(acknowledged[1], &i, sizeof(i)) != sizeof(i)) _exit(1);
        });
        if (i % 7 == round) usleep(200);  // groups of all sizes
      }
      _exit(1);
    }
    close(acknowledged[1]);
    int last = -1;
    while (last < 50 * (round + 1)) ASSERT_EQ(read(acknowledged[0], &last, sizeof(last)), ssize_t{sizeof(last)});
    ASSERT_EQ(kill(writer, SIGKILL), 0);
    ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
    while (read(acknowledged[0], &last, sizeof(last)) == ssize_t{sizeof(last)}) continue;
    close(acknowledged[0]);

    const auto store = SqliteStore::Open(MakeOptions(state));
    ASSERT_TRUE(store.ok()) << store.status();
    const auto numbers = (*store)->Scan("number/");
    const auto count = (*store)->Scan("count");
    ASSERT_TRUE(numbers.ok() && count.ok());
    EXPECT_GE(static_cast<int>(numbers->size()), last + 1) << "something that was acknowledged is lost";
    EXPECT_EQ(count->at(0).value, absl::StrCat(numbers->size()));
    EXPECT_EQ(numbers->back().key, absl::StrCat("number/", absl::Dec(numbers->size() - 1, absl::kZeroPad8)));
  }
}

TEST(SqliteStoreTest, ASecondMusterdOnOneDirectoryIsRefusedByName) {
  const TemporaryDirectory directory;
  const auto first = SqliteStore::Open(MakeOptions(directory.path()));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = SqliteStore::Open(MakeOptions(directory.path()));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use by another musterd"));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(absl::StrCat(getpid())));
}

TEST(SqliteStoreTest, ADirectoryThatCannotBeMadeIsRefused) {
  const TemporaryDirectory directory;
  directory.Put("file", "");
  const auto store = SqliteStore::Open(MakeOptions(directory.File("file/state")));
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("--state-dir: "));
  EXPECT_THAT(std::string(store.status().message()), HasSubstr(directory.File("file")));
}

TEST(SqliteStoreTest, ADamagedPageIsToldAsTheCheckFoundIt) {
  const TemporaryDirectory directory;
  {
    const auto store = SqliteStore::Open(MakeOptions(directory.path()));
    ASSERT_TRUE(store.ok()) << store.status();
    Batch batch;
    for (int i = 0; i < 64; ++i) batch.puts.push_back({absl::StrCat("job/", i), std::string(1000, 'x')});
    ASSERT_TRUE(CommitNow(**store, std::move(batch)).ok());
  }
  absl::StatusOr<std::string> bytes = ReadFile(directory.File("muster.db"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ASSERT_GT(bytes->size(), 3u * 4096);
  directory.Put("muster.db", bytes->replace(4096, 2000, std::string(2000, 'z')));
  const auto store = SqliteStore::Open(MakeOptions(directory.path()));
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("restore it from a copy"));
  EXPECT_THAT(std::string(store.status().message()), Not(HasSubstr("another row available")));
}

TEST(SqliteStoreTest, ADamagedDatabaseIsDataLoss) {
  const TemporaryDirectory directory;
  directory.Put("muster.db", std::string(8192, 'x'));
  const auto store = SqliteStore::Open(MakeOptions(directory.path()));
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("restore it from a copy"));
}

void Execute(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
}

TEST(SqliteStoreTest, NothingIsAcknowledgedOnceTheDirectoryIsGone) {
  const TemporaryDirectory directory;
  const std::string state = directory.path() + "/state";
  const auto store = SqliteStore::Open(MakeOptions(state));
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(CommitNow(**store, {{{"a", "1"}}, {}}).ok());
  std::filesystem::remove_all(state);
  const absl::Status lost = CommitNow(**store, {{{"b", "2"}}, {}});
  EXPECT_FALSE(lost.ok());
  EXPECT_THAT(std::string(lost.message()), HasSubstr(state));
}

TEST(SqliteStoreTest, ADatabaseOfANewerVersionIsLeftAlone) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(SqliteStore::Open(MakeOptions(directory.path())).ok());
  Execute(directory.File("muster.db"), "PRAGMA user_version=99");
  const auto store = SqliteStore::Open(MakeOptions(directory.path()));
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("newer musterd (schema 99"));
}

TEST(SqliteStoreTest, ADatabaseOfAnotherProgramIsLeftAlone) {
  const TemporaryDirectory directory;
  Execute(directory.File("muster.db"), "CREATE TABLE songs (title TEXT)");
  const auto store = SqliteStore::Open(MakeOptions(directory.path()));
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("belongs to another program"));
}

TEST(SqliteStoreTest, AfterAFailedCommitNoLaterOneSucceeds) {
  const TemporaryDirectory directory;
  const auto store = SqliteStore::Open(MakeOptions(directory.path()));
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(CommitNow(**store, {{{"a", "1"}}, {}}).ok());
  // Somebody takes the table away; then it is there again.
  Execute(directory.File("muster.db"), "ALTER TABLE records RENAME TO hidden");
  const absl::Status failed = CommitNow(**store, {{{"b", "2"}}, {}});
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.message()), HasSubstr("--state-dir: cannot write"));
  Execute(directory.File("muster.db"), "ALTER TABLE hidden RENAME TO records");
  EXPECT_EQ(CommitNow(**store, {{{"c", "3"}}, {}}), failed);
  EXPECT_EQ((*store)->Scan("")->size(), 1u);
}

}  // namespace
}  // namespace muster
