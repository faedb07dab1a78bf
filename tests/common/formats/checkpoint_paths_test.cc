#include "common/formats/checkpoint_paths.h"

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CheckpointPathsTest : public ::testing::Test {
 protected:
  // What FindCheckpoints looks for: a directory with a manifest.
  void Make(const std::string& name) {
    ASSERT_TRUE(MakeDirectories(root_.File(name)).ok());
    root_.Put(name + "/" + kManifestFileName, "{}");
  }

  TemporaryDirectory root_;
};

TEST_F(CheckpointPathsTest, NamesAreThoseOfTheFormat) {
  EXPECT_EQ(CheckpointDirectory("ckpt", {3, 200}), "ckpt/attempt-3/step-200");
  EXPECT_EQ(UnfinishedCheckpointDirectory("ckpt", {3, 200}), "ckpt/attempt-3/step-200.tmp");
  EXPECT_EQ(ShardFileName(2), "rank-00002.safetensors");
}

TEST_F(CheckpointPathsTest, FindsTheCompleteOnesByAttemptAndStep) {
  Make("attempt-10/step-5");
  Make("attempt-2/step-100");
  Make("attempt-2/step-20");
  Make("attempt-2/step-30.tmp");
  Make("attempt-2/step-40.deleting");
  Make("attempt-2/step-050");
  Make("attempt-x/step-1");
  Make("other/step-1");
  ASSERT_TRUE(MakeDirectories(root_.File("attempt-2/step-60")).ok());  // no manifest
  root_.Put("attempt-2/note", "a file of the user's");
  EXPECT_THAT(FindCheckpoints(root_.path()).value(),
              ElementsAre(CheckpointId{2, 20}, CheckpointId{2, 100}, CheckpointId{10, 5}));
}

TEST_F(CheckpointPathsTest, FindsNothingWhereThereIsNothing) {
  EXPECT_THAT(FindCheckpoints(root_.File("none")).value(), IsEmpty());
}

}  // namespace
}  // namespace muster
