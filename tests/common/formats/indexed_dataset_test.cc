#include "common/formats/indexed_dataset.h"

#include <unistd.h>

#include <cstring>
#include <limits>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An index as Megatron-LM lays it out, byte by byte, without the writer under test.
struct Index {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t code = 8;
  std::vector<int32_t> lengths = {2, 3};
  std::vector<int64_t> offsets = {0, 4};
  std::vector<int64_t> documents = {0, 1, 2};

  template <typename T>
  static void Put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  std::string Serialize() const {
    std::string out = magic;
    Put(out, version);
    Put(out, code);
    Put(out, static_cast<uint64_t>(lengths.size()));
    Put(out, static_cast<uint64_t>(documents.size()));
    for (int32_t length : lengths) Put(out, length);
    for (int64_t offset : offsets) Put(out, offset);
    for (int64_t document : documents) Put(out, document);
    return out;
  }
};

const std::string kFiveTokens("\1\0\2\0\3\0\4\0\xff\xff", 10);

class IndexedDatasetTest : public ::testing::Test {
 protected:
  absl::StatusOr<IndexedDataset> Open(const std::string& index, const std::string& tokens) {
    directory_.Put("d.idx", index);
    directory_.Put("d.bin", tokens);
    return IndexedDataset::Open(directory_.File("d"));
  }
  std::string ErrorOf(const std::string& index, const std::string& tokens = kFiveTokens) {
    const absl::Status status = Open(index, tokens).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TemporaryDirectory directory_;
};

TEST_F(IndexedDatasetTest, ReadsWhatMegatronWrites) {
  const IndexedDataset dataset = Open(Index().Serialize(), kFiveTokens).value();
  EXPECT_EQ(dataset.type(), TokenType::kUInt16);
  EXPECT_EQ(dataset.tokens(), 5);
  EXPECT_EQ(dataset.sequences(), 2);
  EXPECT_EQ(dataset.documents(), 2);
  EXPECT_EQ(dataset.SequenceLength(1), 3);
  EXPECT_EQ(dataset.DocumentStart(2), 2);
  std::vector<int32_t> tokens(5);
  dataset.Read(0, absl::MakeSpan(tokens));
  EXPECT_THAT(tokens, ElementsAre(1, 2, 3, 4, 65535));
}

TEST_F(IndexedDatasetTest, ReadsEveryTokenType) {
  Index index;
  index.lengths = {1};
  index.offsets = {0};
  index.documents = {0, 1};
  int32_t token = 0;
  index.code = 1;
  Open(index.Serialize(), std::string("\xfe", 1)).value().Read(0, absl::MakeSpan(&token, 1));
  EXPECT_EQ(token, 254);
  index.code = 4;
  Open(index.Serialize(), std::string("\x78\x56\x34\x12", 4)).value().Read(0, absl::MakeSpan(&token, 1));
  EXPECT_EQ(token, 0x12345678);
}

TEST_F(IndexedDatasetTest, RefusesEveryTruncationOfTheIndex) {
  const std::string whole = Index().Serialize();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(ErrorOf(whole.substr(0, size)), HasSubstr(directory_.File("d.idx") + ": byte ")) << size;
  }
}

TEST_F(IndexedDatasetTest, RefusesEveryTruncationOfTheTokens) {
  for (size_t size = 0; size < kFiveTokens.size(); ++size) {
    EXPECT_THAT(ErrorOf(Index().Serialize(), kFiveTokens.substr(0, size)),
                HasSubstr(directory_.File("d.bin") + ": byte " + std::to_string(size) + ": the file has " +
                          std::to_string(size) + " bytes"));
  }
}

TEST_F(IndexedDatasetTest, SurvivesEveryFlippedBitOfTheIndex) {
  const std::string whole = Index().Serialize();
  int refused = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const absl::StatusOr<IndexedDataset> dataset = Open(damaged, kFiveTokens);
    if (!dataset.ok()) {
      ++refused;
      continue;
    }
    std::vector<int32_t> tokens(static_cast<size_t>(dataset->tokens()));
    dataset->Read(0, absl::MakeSpan(tokens));
  }
  // Another document boundary may be just as valid; everything else must be noticed.
  EXPECT_GE(refused, static_cast<int>(8 * whole.size()) - 2);
}

TEST_F(IndexedDatasetTest, NamesTheOffsetOfAWrongHeader) {
  Index index;
  index.magic[3] = 'X';
  EXPECT_THAT(ErrorOf(index.Serialize()), HasSubstr("d.idx: byte 0: does not begin with MMIDIDX"));
  index = Index();
  index.version = 2;
  EXPECT_THAT(ErrorOf(index.Serialize()), HasSubstr("d.idx: byte 9: index version 2"));
  index = Index();
  index.code = 9;
  EXPECT_THAT(ErrorOf(index.Serialize()), HasSubstr("d.idx: byte 17: dtype code 9"));
  index.code = 7;
  EXPECT_THAT(ErrorOf(index.Serialize()), HasSubstr("d.idx: byte 17: tokens of type float32"));
}

TEST_F(IndexedDatasetTest, RefusesCountsThatOverflow) {
  for (size_t at : {18u, 26u}) {
    for (uint64_t count : {~uint64_t{0}, uint64_t{1} << 61, uint64_t{1} << 32, uint64_t{0}}) {
      std::string whole = Index().Serialize();
      std::memcpy(whole.data() + at, &count, sizeof(count));
      EXPECT_THAT(ErrorOf(whole), HasSubstr("d.idx: byte "));
    }
  }
}

TEST_F(IndexedDatasetTest, RefusesSequencesThatDoNotLieOneAfterAnother) {
  Index index;
  index.lengths[1] = -3;
  EXPECT_THAT(ErrorOf(index.Serialize()), HasSubstr("d.idx: byte 38: sequence 1 has length -3"));
  index = Index();
  index.offsets[1] = 6;
  EXPECT_THAT(ErrorOf(index.Serialize()), HasSubstr("d.idx: byte 50: sequence 1 begins at byte 6"));
  index.offsets[1] = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(ErrorOf(index.Serialize()), HasSubstr("expected 4"));
}

TEST_F(IndexedDatasetTest, RefusesDocumentsThatAreNoPartition) {
  for (const std::vector<int64_t>& documents :
       {std::vector<int64_t>{1, 1, 2}, {0, 1, 1}, {0, 3, 2}, {0, -1, 2}, {0, 2, 1}}) {
    Index index;
    index.documents = documents;
    EXPECT_THAT(ErrorOf(index.Serialize()), HasSubstr("document index"));
  }
}

TEST_F(IndexedDatasetTest, RefusesTokensThatTheIndexDoesNotDescribe) {
  EXPECT_THAT(ErrorOf(Index().Serialize(), kFiveTokens + "xx"), HasSubstr("still being written"));
}

TEST_F(IndexedDatasetTest, NamesAMissingFile) {
  directory_.Put("d.idx", Index().Serialize());
  const absl::Status status = IndexedDataset::Open(directory_.File("d")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("d.bin"));
}

TEST_F(IndexedDatasetTest, NamesTheTokenThatIsOutsideTheVocabulary) {
  const IndexedDataset dataset = Open(Index().Serialize(), kFiveTokens).value();
  EXPECT_TRUE(dataset.CheckTokens(65536, 0, 5).ok());
  EXPECT_TRUE(dataset.CheckTokens(5, 0, 4).ok());
  const absl::Status status = dataset.CheckTokens(5, 0, 5);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("d.bin: byte 8: token 65535 is outside the model's vocabulary of 5"));
}

TEST_F(IndexedDatasetTest, FindsANegativeToken) {
  Index index;
  index.code = 4;
  index.lengths = {2};
  index.offsets = {0};
  index.documents = {0, 1};
  const IndexedDataset dataset = Open(index.Serialize(), std::string("\1\0\0\0\xff\xff\xff\xff", 8)).value();
  EXPECT_THAT(std::string(dataset.CheckTokens(100, 0, 2).message()), HasSubstr("byte 4: token -1"));
}

TEST_F(IndexedDatasetTest, WritesWhatItReads) {
  for (TokenType type : {TokenType::kUInt8, TokenType::kUInt16, TokenType::kInt32}) {
    IndexedDatasetWriter writer = IndexedDatasetWriter::Create(directory_.File("w"), type).value();
    ASSERT_TRUE(writer.Append({1, 2}).ok());
    ASSERT_TRUE(writer.EndDocument().ok());
    ASSERT_TRUE(writer.EndDocument().ok());  // an empty one leaves no trace
    ASSERT_TRUE(writer.Append({3, 4, 255}).ok());
    ASSERT_TRUE(writer.EndDocument().ok());
    ASSERT_TRUE(writer.Finish().ok());
    const IndexedDataset dataset = IndexedDataset::Open(directory_.File("w")).value();
    EXPECT_EQ(dataset.type(), type);
    EXPECT_EQ(dataset.documents(), 2);
    std::vector<int32_t> tokens(5);
    dataset.Read(0, absl::MakeSpan(tokens));
    EXPECT_THAT(tokens, ElementsAre(1, 2, 3, 4, 255));
  }
}

TEST_F(IndexedDatasetTest, WritesTheBytesThatMegatronWrites) {
  IndexedDatasetWriter writer = IndexedDatasetWriter::Create(directory_.File("w"), TokenType::kUInt16).value();
  ASSERT_TRUE(writer.Append({1, 2}).ok());
  ASSERT_TRUE(writer.EndDocument().ok());
  ASSERT_TRUE(writer.Append({3, 4, 65535}).ok());
  ASSERT_TRUE(writer.EndDocument().ok());
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_EQ(directory_.Get("w.idx"), Index().Serialize());
  EXPECT_EQ(directory_.Get("w.bin"), kFiveTokens);
}

TEST_F(IndexedDatasetTest, WriterRefusesATokenThatDoesNotFit) {
  IndexedDatasetWriter writer = IndexedDatasetWriter::Create(directory_.File("w"), TokenType::kUInt8).value();
  EXPECT_EQ(writer.Append({256}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(writer.Append({-1}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(IndexedDatasetTest, WriterLeavesNothingWithoutFinish) {
  {
    IndexedDatasetWriter writer = IndexedDatasetWriter::Create(directory_.File("w"), TokenType::kUInt8).value();
    ASSERT_TRUE(writer.Append({1}).ok());
  }
  EXPECT_TRUE(directory_.empty());
}

TEST_F(IndexedDatasetTest, WriterLeavesNothingWhenTheIndexFindsNoSpace) {
  directory_.PutFullDevice("w.idx.tmp-" + std::to_string(getpid()));
  {
    IndexedDatasetWriter writer = IndexedDatasetWriter::Create(directory_.File("w"), TokenType::kUInt8).value();
    ASSERT_TRUE(writer.Append({1}).ok());
    ASSERT_TRUE(writer.EndDocument().ok());
    const absl::Status status = writer.Finish();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("no space left on device writing " + directory_.File("w.idx")));
  }
  EXPECT_TRUE(directory_.empty());
}

}  // namespace
}  // namespace muster
