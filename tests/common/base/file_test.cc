#include "common/base/file.h"

#include <unistd.h>

#include <filesystem>

#include "common/base/file_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(ReadFile, ReturnsWhatWasWrittenDurably) {
  TemporaryDirectory directory;
  const std::string contents("a\0b\n", 4);
  ASSERT_TRUE(WriteFileDurably(directory.File("x"), contents).ok());
  EXPECT_EQ(ReadFile(directory.File("x")).value(), contents);
  EXPECT_EQ(FileSize(directory.File("x")).value(), 4);
}

TEST(ReadFile, NamesThePathOfAMissingFile) {
  const absl::Status status = ReadFile("/nowhere/at/all").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no such file or directory opening /nowhere/at/all");
}

TEST(ReadFile, RefusesADirectoryAndAFileOverTheLimit) {
  TemporaryDirectory directory;
  directory.Put("big", std::string(100, 'x'));
  EXPECT_EQ(ReadFile(directory.path()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadFile(directory.File("big"), 99).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(ReadFile(directory.File("big"), 100).ok());
}

TEST(WriteFileDurably, ReplacesTheOldContentAndLeavesNoTemporaryFile) {
  TemporaryDirectory directory;
  directory.Put("x", "old");
  ASSERT_TRUE(WriteFileDurably(directory.File("x"), "new").ok());
  EXPECT_EQ(directory.Get("x"), "new");
  EXPECT_THAT(ListDirectory(directory.path()).value(), ElementsAre("x"));
}

TEST(WriteFileDurably, LeavesTheOldContentWhenTheDeviceIsFull) {
  TemporaryDirectory directory;
  directory.Put("x", "old");
  directory.PutFullDevice("x.tmp-" + std::to_string(getpid()));
  const absl::Status status = WriteFileDurably(directory.File("x"), "new");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), StartsWith("no space left on device writing " + directory.File("x")));
  EXPECT_EQ(directory.Get("x"), "old");
  EXPECT_THAT(ListDirectory(directory.path()).value(), ElementsAre("x"));
}

TEST(FileWriter, RemovesAFileThatWasNotFinished) {
  TemporaryDirectory directory;
  {
    FileWriter writer = FileWriter::Create(directory.File("x")).value();
    ASSERT_TRUE(writer.Append(Bytes("half")).ok());
    EXPECT_TRUE(PathExists(directory.File("x")));
  }
  EXPECT_TRUE(directory.empty());
}

TEST(FileWriter, CountsAndChecksumsWhatItWrote) {
  TemporaryDirectory directory;
  FileWriter writer = FileWriter::Create(directory.File("x")).value();
  ASSERT_TRUE(writer.Append(Bytes("12345")).ok());
  ASSERT_TRUE(writer.Append(Bytes("6789")).ok());
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_EQ(writer.checksums().bytes(), 9);
  EXPECT_EQ(writer.checksums().crc32(), 0xcbf43926u);  // the check value of CRC-32 for "123456789"
  EXPECT_EQ(directory.Get("x"), "123456789");
}

TEST(MakeDirectories, MakesEveryLevelAndAcceptsWhatIsThere) {
  TemporaryDirectory directory;
  ASSERT_TRUE(MakeDirectories(directory.File("a/b/c")).ok());
  ASSERT_TRUE(MakeDirectories(directory.File("a/b/c")).ok());
  EXPECT_TRUE(PathExists(directory.File("a/b/c")));
}

TEST(MakeDirectories, RefusesAFileInTheWay) {
  TemporaryDirectory directory;
  directory.Put("a", "");
  const absl::Status status = MakeDirectories(directory.File("a"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(directory.File("a") + " is not a directory"));
  EXPECT_FALSE(MakeDirectories(directory.File("a/b")).ok());
}

TEST(RemoveTree, RemovesBelowTheRootAndDoesNotFollowLinks) {
  TemporaryDirectory outside;
  outside.Put("precious", "x");
  TemporaryDirectory root;
  ASSERT_TRUE(MakeDirectories(root.File("tree/sub")).ok());
  root.Put("tree/sub/file", "x");
  std::filesystem::create_directory_symlink(outside.path(), root.File("tree/link"));
  ASSERT_TRUE(RemoveTree(root.File("tree"), root.path()).ok());
  EXPECT_TRUE(root.empty());
  EXPECT_EQ(outside.Get("precious"), "x");
  EXPECT_TRUE(RemoveTree(root.File("tree"), root.path()).ok()) << "nothing there is no error";
}

TEST(RemoveTreeAtOnce, RemovesOneAndWhatAnEarlierRemovalLeftOfIt) {
  TemporaryDirectory root;
  for (const char* name : {"step-20", "step-20.deleting", "step-200"}) {
    ASSERT_TRUE(MakeDirectories(root.File(name)).ok());
    root.Put(std::string(name) + "/file", "x");
  }
  ASSERT_TRUE(RemoveTreeAtOnce(root.File("step-20"), root.path()).ok());
  EXPECT_THAT(ListDirectory(root.path()).value(), ElementsAre("step-200"));
  EXPECT_TRUE(RemoveTreeAtOnce(root.File("step-20"), root.path()).ok()) << "nothing there is no error";
}

TEST(RemoveTree, RefusesWhatIsNotBelowTheRoot) {
  TemporaryDirectory root;
  root.Put("keep", "x");
  ASSERT_TRUE(MakeDirectories(root.File("sub")).ok());
  for (const std::string& path : {root.path(), root.path() + "/", root.File("sub/../keep"), std::string("/"),
                                  std::string(), root.path() + "-other"}) {
    EXPECT_EQ(RemoveTree(path, root.path()).code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_EQ(RemoveTreeAtOnce(path, root.path()).code(), absl::StatusCode::kInvalidArgument) << path;
  }
  EXPECT_EQ(RemoveTree(root.File("keep"), "").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(root.Get("keep"), "x");
}

TEST(DirectoryOf, IsTheParent) {
  EXPECT_EQ(DirectoryOf("a/b"), "a");
  EXPECT_EQ(DirectoryOf("b"), ".");
  EXPECT_EQ(DirectoryOf("/b"), "/");
}

}  // namespace
}  // namespace muster
