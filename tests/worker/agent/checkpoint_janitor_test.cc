#include "worker/agent/checkpoint_janitor.h"

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(CheckpointJanitorTest, DeletesWhatItIsToldAndNothingOutsideTheRoot) {
  TemporaryDirectory directory;
  for (const char* name : {"root/attempt-1/step-1", "root/attempt-1/step-2", "outside"}) {
    ASSERT_TRUE(MakeDirectories(directory.File(name)).ok());
  }
  CheckpointJanitor janitor(directory.File("root"));
  janitor.Delete("attempt-1/step-1");
  janitor.Delete("attempt-1/step-1");  // coordinators repeat themselves
  janitor.Delete("attempt-1/none");
  janitor.Delete("../outside");
  janitor.WaitUntilIdle();
  EXPECT_THAT(ListDirectory(directory.File("root/attempt-1")).value(), ElementsAre("step-2"));
  EXPECT_TRUE(PathExists(directory.File("outside")));
}

}  // namespace
}  // namespace muster
