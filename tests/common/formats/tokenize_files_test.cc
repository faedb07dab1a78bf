#include "common/formats/tokenize_files.h"

#include <unistd.h>

#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/formats/byte_tokenizer.h"
#include "common/formats/indexed_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The text of a dataset, '$' where a document ends.
std::string TextOf(const std::string& prefix) {
  const absl::StatusOr<IndexedDataset> dataset = IndexedDataset::Open(prefix);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  std::vector<int32_t> tokens(static_cast<size_t>(dataset->tokens()));
  dataset->Read(0, absl::MakeSpan(tokens));
  std::string text;
  for (int32_t token : tokens) text += token == kByteEndOfDocument ? '$' : static_cast<char>(token);
  return text;
}

class TokenizeFilesTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<TokenizedDataset>> Tokenize(const std::vector<std::string>& inputs,
                                                         const TokenizeOptions& options = {}) {
    return TokenizeFiles(inputs, ByteTokenizer(), out_.File("set"), options);
  }

  TemporaryDirectory in_;
  TemporaryDirectory out_;
};

TEST_F(TokenizeFilesTest, MakesADocumentOfEachFile) {
  const auto done = Tokenize({in_.Put("a", "one\n"), in_.Put("b", "two")});
  ASSERT_TRUE(done.ok()) << done.status();
  ASSERT_EQ(done->size(), 1u);
  EXPECT_EQ((*done)[0].prefix, out_.File("set"));
  EXPECT_EQ((*done)[0].tokens, 9);
  EXPECT_EQ((*done)[0].documents, 2);
  EXPECT_EQ(TextOf(out_.File("set")), "one\n$two$");
}

TEST_F(TokenizeFilesTest, KeepsEveryByteValue) {
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  ASSERT_TRUE(Tokenize({in_.Put("a", all)}).ok());
  EXPECT_EQ(TextOf(out_.File("set")), all + "$");
}

TEST_F(TokenizeFilesTest, SplitsAtTheSeparator) {
  TokenizeOptions options;
  options.document_separator = "<end>";
  ASSERT_TRUE(Tokenize({in_.Put("a", "<end>one<end><end>two<end>"), in_.Put("b", "three")}, options).ok());
  EXPECT_EQ(TextOf(out_.File("set")), "one$two$three$");
}

TEST_F(TokenizeFilesTest, CutsTheValidationSetAtALine) {
  TokenizeOptions options;
  options.validation_fraction = 0.25;
  const auto done = Tokenize({in_.Put("a", "line 1\nline 2\n"), in_.Put("b", "line 3\nline 4\nline 5\n")}, options);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ((*done)[0].prefix, out_.File("set-train"));
  EXPECT_EQ((*done)[1].prefix, out_.File("set-val"));
  EXPECT_EQ(TextOf(out_.File("set-train")), "line 1\nline 2\n$line 3\nline 4\n$");
  EXPECT_EQ(TextOf(out_.File("set-val")), "line 5\n$");
}

TEST_F(TokenizeFilesTest, MakesADocumentOfEachLineOfJson) {
  TokenizeOptions options;
  options.text_field = "text";
  ASSERT_TRUE(Tokenize({in_.Put("a", "{\"text\": \"one\\n\"}\n\n{\"id\": 2, \"text\": \"two\"}")}, options).ok());
  EXPECT_EQ(TextOf(out_.File("set")), "one\n$two$");
}

TEST_F(TokenizeFilesTest, NamesTheLineThatIsNoDocument) {
  TokenizeOptions options;
  options.text_field = "text";
  const std::string good = "{\"text\": \"one\"}\n";
  const auto error_of = [&](const std::string& line) {
    return std::string(Tokenize({in_.Put("a", absl::StrCat(good, line))}, options).status().message());
  };
  EXPECT_EQ(error_of("{\"text\": 3}"), absl::StrCat(in_.File("a"), ":2: text: expected a string"));
  EXPECT_EQ(error_of("{}"), absl::StrCat(in_.File("a"), ":2: \"text\" is missing"));
  EXPECT_THAT(error_of("{"), HasSubstr(absl::StrCat(in_.File("a"), ":2: not valid JSON at byte")));
  EXPECT_TRUE(out_.empty());
}

TEST_F(TokenizeFilesTest, OfAPromptAndItsCompletionOnlyTheLatterCounts) {
  TokenizeOptions options;
  options.prompt_field = "ask";
  options.completion_field = "answer";
  ASSERT_TRUE(Tokenize({in_.Put("a", "{\"ask\": \"2+2=\", \"answer\": \"4\"}\n")}, options).ok());
  EXPECT_EQ(TextOf(out_.File("set")), "2+2=4$");
  const IndexedDataset dataset = IndexedDataset::Open(out_.File("set")).value();
  std::vector<bool> counted;
  for (int64_t token = 0; token < 6; ++token) counted.push_back(dataset.Counted(token));
  EXPECT_THAT(counted, ElementsAre(false, false, false, false, true, true));
}

TEST_F(TokenizeFilesTest, KeepsTheTokenizerBesideTheDataset) {
  ASSERT_TRUE(Tokenize({in_.Put("a", "text")}).ok());
  EXPECT_THAT(out_.Get("set.tokenizer/tokenizer.json"), HasSubstr("ByteLevel"));
}

TEST_F(TokenizeFilesTest, CanReplaceADataset) {
  ASSERT_TRUE(Tokenize({in_.Put("a", "a long first version")}).ok());
  ASSERT_TRUE(Tokenize({in_.Put("a", "short")}).ok());
  EXPECT_EQ(TextOf(out_.File("set")), "short$");
}

TEST_F(TokenizeFilesTest, RefusesBadInputAndLeavesNothing) {
  const std::string good = in_.Put("good", "text\n");
  absl::Status status = Tokenize({good, in_.File("missing")}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no such file or directory opening " + in_.File("missing"));
  status = Tokenize({good, in_.Put("empty", "")}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), in_.File("empty") + " is empty");
  EXPECT_EQ(Tokenize({in_.path()}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Tokenize({}).status().code(), absl::StatusCode::kInvalidArgument);
  TokenizeOptions options;
  options.validation_fraction = 0.7;
  EXPECT_EQ(Tokenize({good}, options).status().code(), absl::StatusCode::kInvalidArgument);
  options.validation_fraction = 0.4;
  EXPECT_THAT(std::string(Tokenize({in_.Put("one-line", "no line ends here")}, options).status().message()),
              HasSubstr("no text is left for " + out_.File("set-val")));
  EXPECT_TRUE(out_.empty());
}

TEST_F(TokenizeFilesTest, NamesAMissingOutputDirectory) {
  const absl::Status status = TokenizeFiles({in_.Put("a", "x")}, ByteTokenizer(), out_.File("none/set"), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the directory " + out_.File("none") + " of"));
}

TEST_F(TokenizeFilesTest, LeavesNothingOnAFullDevice) {
  for (const std::string name : {"set-train.bin", "set-val.bin", "set-train.idx", "set-val.idx"}) {
    out_.PutFullDevice(name + ".tmp-" + std::to_string(getpid()));
    TokenizeOptions options;
    options.validation_fraction = 0.5;
    const absl::Status status = Tokenize({in_.Put("a", "line 1\nline 2\nline 3\n")}, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("no space left on device writing " + out_.File(name)));
    EXPECT_TRUE(out_.empty()) << name;
  }
}

}  // namespace
}  // namespace muster
