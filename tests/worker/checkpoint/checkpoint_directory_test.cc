#include "worker/checkpoint/checkpoint_directory.h"

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointDirectoryTest : public ::testing::Test {
 protected:
  // What FindCheckpoints looks for: a directory with a manifest.
  void Make(const std::string& name) {
    ASSERT_TRUE(MakeDirectories(root_.File(name)).ok());
    root_.Put(name + "/" + kManifestFileName, "{}");
  }

  TemporaryDirectory root_;
};

TEST_F(CheckpointDirectoryTest, AnAttemptThatHasCheckpointsBeforeItBeginsIsRefused) {
  Make("attempt-1/step-100");
  const absl::Status used = CheckUnused(root_.path(), 1);
  EXPECT_EQ(used.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(used.message()), testing::HasSubstr(root_.File("attempt-1/step-100")));
  EXPECT_TRUE(CheckUnused(root_.path(), 2).ok());
  EXPECT_TRUE(CheckUnused(root_.File("none"), 1).ok());
}

TEST_F(CheckpointDirectoryTest, RemovesTheLeftoversOfEarlierAttemptsOnly) {
  Make("attempt-1/step-10");
  Make("attempt-1/step-20.tmp");
  Make("attempt-1/step-5.deleting");
  Make("attempt-1/notes.tmp");  // a user's
  Make("attempt-2/step-30.tmp");
  ASSERT_TRUE(RemoveLeftovers(root_.path(), 2).ok());
  EXPECT_THAT(ListDirectory(root_.File("attempt-1")).value(), ElementsAre("notes.tmp", "step-10"));
  EXPECT_THAT(ListDirectory(root_.File("attempt-2")).value(), ElementsAre("step-30.tmp"));
  EXPECT_TRUE(RemoveLeftovers(root_.File("none"), 2).ok());
}

TEST_F(CheckpointDirectoryTest, ProbeTellsASharedDirectoryFromAnother) {
  ASSERT_TRUE(WriteProbe(root_.path(), 4, "nonce").ok());
  EXPECT_TRUE(CheckProbe(root_.path(), 4, "nonce").ok());
  TemporaryDirectory other;
  const absl::Status elsewhere = CheckProbe(other.path(), 4, "nonce");
  EXPECT_EQ(elsewhere.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(elsewhere.message()), HasSubstr("checkpoint.directory is not shared by all workers"));
  EXPECT_EQ(CheckProbe(root_.path(), 4, "older").code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(RemoveProbe(root_.path(), 4).ok());
  EXPECT_THAT(ListDirectory(root_.File("attempt-4")).value(), IsEmpty());
}

}  // namespace
}  // namespace muster
