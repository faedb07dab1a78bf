#include "common/base/lease_file.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

TEST(LeaseFileTest, ReadersSeeWhatIsStamped) {
  TemporaryDirectory directory;
  const std::string path = directory.File("lease");
  absl::StatusOr<LeaseStamp> stamp = LeaseStamp::Create(path);
  ASSERT_TRUE(stamp.ok()) << stamp.status();
  absl::StatusOr<LeaseReader> reader = LeaseReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(absl::IsUnavailable(reader->Check(absl::Seconds(1))));  // a new lease has passed
  stamp->Set(absl::Seconds(100));
  EXPECT_TRUE(reader->Check(absl::Seconds(100)).ok());
  EXPECT_TRUE(absl::IsUnavailable(reader->Check(absl::Seconds(100) + absl::Nanoseconds(1))));
  stamp->Set(absl::InfiniteDuration());
  EXPECT_TRUE(reader->Check(absl::Hours(100000)).ok());
}

TEST(LeaseFileTest, ANewAgentBeginsWithoutALease) {
  TemporaryDirectory directory;
  const std::string path = directory.File("lease");
  LeaseStamp::Create(path)->Set(absl::InfiniteDuration());
  absl::StatusOr<LeaseStamp> next = LeaseStamp::Create(path);
  EXPECT_FALSE(LeaseReader::Open(path)->Check(absl::Seconds(1)).ok());
}

TEST(LeaseFileTest, RefusesWhatIsNoLease) {
  TemporaryDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(LeaseReader::Open(directory.File("none")).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(LeaseReader::Open(directory.Put("text", "hello")).status()));
}

}  // namespace
}  // namespace muster
