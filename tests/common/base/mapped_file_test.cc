#include "common/base/mapped_file.h"

#include <utility>

#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

std::string TextOf(const MappedFile& file) {
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

TEST(MappedFile, ShowsTheContent) {
  TemporaryDirectory directory;
  const MappedFile file = MappedFile::Open(directory.Put("x", "hello")).value();
  EXPECT_EQ(file.size(), 5);
  EXPECT_EQ(TextOf(file), "hello");
}

TEST(MappedFile, TakesAnEmptyFile) {
  TemporaryDirectory directory;
  const MappedFile file = MappedFile::Open(directory.Put("x", "")).value();
  EXPECT_EQ(file.size(), 0);
  EXPECT_TRUE(file.bytes().empty());
}

TEST(MappedFile, MovesWithoutMovingTheBytes) {
  TemporaryDirectory directory;
  MappedFile first = MappedFile::Open(directory.Put("x", "hello")).value();
  const std::byte* data = first.bytes().data();
  MappedFile second = MappedFile::Open(directory.Put("y", "other")).value();
  second = std::move(first);
  EXPECT_EQ(second.bytes().data(), data);
  EXPECT_EQ(TextOf(second), "hello");
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
  TemporaryDirectory directory;
  EXPECT_EQ(MappedFile::Open(directory.path()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MappedFile::Open(directory.File("none")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster
