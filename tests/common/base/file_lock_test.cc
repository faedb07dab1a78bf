#include "common/base/file_lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// A process that takes the lock and holds it until it is killed.
pid_t ForkHolder(const std::string& path) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    absl::StatusOr<FileLock> lock = FileLock::Acquire(path);
    const char answer = lock.ok() ? 'y' : 'n';
    if (write(ready[1], &answer, 1) != 1) _exit(1);
    while (true) pause();
  }
  char answer = 0;
  EXPECT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  close(ready[0]);
  close(ready[1]);
  return child;
}

TEST(FileLock, IsHeldUntilItsObjectGoes) {
  TemporaryDirectory directory;
  const std::string path = directory.File("lock");
  EXPECT_EQ(FileLock::IsHeld(path).status().code(), absl::StatusCode::kNotFound);
  {
    const absl::StatusOr<FileLock> lock = FileLock::Acquire(path);
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_TRUE(FileLock::IsHeld(path).value());
    EXPECT_EQ(FileLock::Acquire(path).status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_FALSE(FileLock::IsHeld(path).value());
  EXPECT_TRUE(FileLock::Acquire(path).ok());
}

TEST(FileLock, NamesTheHolderAndIsReleasedByItsDeath) {
  TemporaryDirectory directory;
  const std::string path = directory.File("lock");
  const pid_t holder = ForkHolder(path);
  EXPECT_TRUE(FileLock::IsHeld(path).value());
  EXPECT_THAT(std::string(FileLock::Acquire(path).status().message()),
              HasSubstr("is locked by process " + std::to_string(holder)));
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  EXPECT_FALSE(FileLock::IsHeld(path).value());
  EXPECT_TRUE(FileLock::Acquire(path).ok());
}

}  // namespace
}  // namespace muster
