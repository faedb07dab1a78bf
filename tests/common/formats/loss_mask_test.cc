#include "common/formats/loss_mask.h"

#include "absl/strings/str_cat.h"
#include "common/formats/indexed_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class LossMaskTest : public ::testing::Test {
 protected:
  // Runs of tokens, by turns counted and not, beginning with counted ones.
  std::string Write(const std::vector<int64_t>& runs) {
    LossMaskWriter writer;
    for (size_t i = 0; i < runs.size(); ++i) writer.Append(runs[i], i % 2 == 0);
    EXPECT_TRUE(writer.Write(directory_.File("d")).ok());
    return directory_.File("d");
  }
  std::string ErrorOf(const std::string& contents) {
    directory_.Put("d.mask", contents);
    return std::string(LossMask::Open(directory_.File("d"), 20).status().message());
  }

  TemporaryDirectory directory_;
};

TEST_F(LossMaskTest, KeepsWhichTokensCount) {
  const std::vector<int64_t> runs = {3, 2, 11, 1, 8, 16, 5};
  const LossMask mask = LossMask::Open(Write(runs), 46).value();
  int64_t token = 0;
  for (size_t run = 0; run < runs.size(); ++run) {
    for (int64_t i = 0; i < runs[run]; ++i, ++token) EXPECT_EQ(mask.Counted(token), run % 2 == 0) << token;
  }
}

TEST_F(LossMaskTest, NamesTheByteOfWhatIsWrong) {
  Write({3, 17});
  const std::string good = directory_.Get("d.mask");
  EXPECT_THAT(ErrorOf(good.substr(0, 20)), HasSubstr("d.mask: byte 20: the file ends within its header"));
  EXPECT_THAT(ErrorOf(absl::StrCat("m", good.substr(1))), HasSubstr("byte 0: does not begin with MUSTMASK"));
  EXPECT_THAT(ErrorOf(absl::StrCat(good.substr(0, 8), "\2", good.substr(9))), HasSubstr("byte 8: version 2"));
  EXPECT_THAT(ErrorOf(absl::StrCat(good.substr(0, 16), "\x15", good.substr(17))),
              HasSubstr("byte 16: it is of 21 tokens"));
  EXPECT_THAT(ErrorOf(absl::StrCat(good, "x")), HasSubstr("byte 27: the file has 28 bytes, 20 tokens need 27"));
}

TEST_F(LossMaskTest, ADatasetWithoutPromptsHasNone) {
  const auto write = [&](bool counted) {
    IndexedDatasetWriter writer = IndexedDatasetWriter::Create(directory_.File("d"), TokenType::kUInt8).value();
    EXPECT_TRUE(writer.Append({1, 2}, counted).ok());
    EXPECT_TRUE(writer.Append({3}).ok());
    EXPECT_TRUE(writer.EndDocument().ok());
    EXPECT_TRUE(writer.Finish().ok());
    return IndexedDataset::Open(directory_.File("d")).value();
  };
  EXPECT_FALSE(write(false).Counted(1));
  EXPECT_TRUE(write(true).Counted(1)) << "the mask of the dataset before is gone";
}

}  // namespace
}  // namespace muster
