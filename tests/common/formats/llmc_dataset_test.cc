#include "common/formats/llmc_dataset.h"

#include <array>
#include <cstring>

#include "common/formats/token_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file as llm.c's write_datafile makes it.
template <typename T>
std::string FileOf(int32_t magic, int32_t version, const std::vector<T>& tokens) {
  std::array<int32_t, 256> header{};
  header[0] = magic;
  header[1] = version;
  header[2] = static_cast<int32_t>(tokens.size());
  std::string contents(reinterpret_cast<const char*>(header.data()), sizeof(header));
  contents.append(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(T));
  return contents;
}

std::string Gpt2File() { return FileOf<uint16_t>(20240520, 1, {50256, 11, 12, 50256, 13, 50256}); }

class LlmcDatasetTest : public ::testing::Test {
 protected:
  std::string ErrorOf(const std::string& contents) {
    const absl::Status status = LlmcDataset::Open(directory_.Put("shard.bin", contents), true).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  TemporaryDirectory directory_;
};

TEST_F(LlmcDatasetTest, ReadsTokensOfGpt2AndTheirDocuments) {
  const auto dataset = OpenTokenDataset(directory_.Put("shard.bin", Gpt2File()), true).value();
  ASSERT_EQ(dataset->tokens(), 6);
  std::vector<int32_t> tokens(6);
  dataset->Read(0, absl::MakeSpan(tokens));
  EXPECT_THAT(tokens, ElementsAre(50256, 11, 12, 50256, 13, 50256));
  ASSERT_EQ(dataset->documents(), 3);
  EXPECT_EQ(dataset->DocumentBegin(1), 3);
  EXPECT_EQ(dataset->DocumentBegin(3), 6);
  EXPECT_EQ(dataset->DocumentOf(2), 0);
  EXPECT_EQ(dataset->DocumentOf(4), 1);
  EXPECT_EQ(OpenTokenDataset(directory_.File("shard.bin"), false).value()->documents(), 1);
}

TEST_F(LlmcDatasetTest, ReadsTokensOfLlama3) {
  const std::string path = directory_.Put("shard.bin", FileOf<uint32_t>(20240801, 7, {128000, 70000, 3, 128000, 9}));
  const auto dataset = OpenTokenDataset(path, true).value();
  std::vector<int32_t> tokens(2);
  dataset->Read(1, absl::MakeSpan(tokens));
  EXPECT_THAT(tokens, ElementsAre(70000, 3));
  EXPECT_EQ(dataset->documents(), 2);
  const absl::Status status = dataset->CheckTokens(70000, 0, 5);
  EXPECT_THAT(std::string(status.message()), HasSubstr("shard.bin: byte 1024: token 128000 is outside"));
}

TEST_F(LlmcDatasetTest, NamesTheByteOfWhatIsWrong) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("shard.bin: byte 0: not a token file of llm.c"));
  EXPECT_THAT(ErrorOf("text"), HasSubstr("shard.bin: byte 0: not a token file of llm.c"));
  EXPECT_THAT(ErrorOf(Gpt2File().substr(0, 900)), HasSubstr("byte 900: the file ends within its header"));
  EXPECT_THAT(ErrorOf(FileOf<uint16_t>(20240520, 2, {1})), HasSubstr("byte 4: version 2, only 1 is known"));
  EXPECT_THAT(ErrorOf(Gpt2File().substr(0, 1030)), HasSubstr("byte 1030: the file has 1030 bytes"));
  EXPECT_THAT(ErrorOf(Gpt2File() + "xx"), HasSubstr("byte 1036: the file has 1038 bytes"));
}

}  // namespace
}  // namespace muster
