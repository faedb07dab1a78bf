#include "common/formats/bpe_tokenizer.h"

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;

// Tokenizers and expected tokens made by Hugging Face's `tokenizers` (make_golden.py there).
constexpr char kFolder[] = "tests/common/formats/bpe/";

std::string Contents(const std::string& name) { return ReadFile(absl::StrCat(kFolder, name)).value(); }

std::unique_ptr<Tokenizer> Load(const std::string& name) { return LoadTokenizer(absl::StrCat(kFolder, name)).value(); }

class BpeGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BpeGoldenTest, GivesTheTokensOfHuggingFace) {
  const std::unique_ptr<Tokenizer> tokenizer = Load(GetParam());
  const json golden = json::parse(Contents("golden.json"));
  for (size_t i = 0; i < golden["texts"].size(); ++i) {
    const std::string text = golden["texts"][i];
    EXPECT_EQ(EncodeAll(*tokenizer, text).value(), golden[GetParam()][i].get<std::vector<int32_t>>()) << text;
  }
}

TEST_P(BpeGoldenTest, DecodesWhatItEncoded) {
  const std::unique_ptr<Tokenizer> tokenizer = Load(GetParam());
  // Bytes that are no UTF-8 among them; no characters that NFC would change.
  const std::string text = "caf\xC3\xA9 \xFF\xFE broken \xE4\xBD and 123 words\n";
  EXPECT_EQ(tokenizer->Decode(EncodeAll(*tokenizer, text).value()).value(), text);
}

TEST_P(BpeGoldenTest, ItsFilesLoadAsTheSameTokenizer) {
  const std::unique_ptr<Tokenizer> tokenizer = Load(GetParam());
  TemporaryDirectory directory;
  ASSERT_TRUE(WriteTokenizer(*tokenizer, directory.File("set.tokenizer")).ok());
  const std::unique_ptr<Tokenizer> again = LoadTokenizer(directory.File("set.tokenizer")).value();
  EXPECT_EQ(again->vocab(), tokenizer->vocab());
  EXPECT_EQ(again->end_of_document(), tokenizer->end_of_document());
  const std::string text = "It's the same, again: 12345.\n";
  EXPECT_EQ(EncodeAll(*again, text).value(), EncodeAll(*tokenizer, text).value());
}

TEST_P(BpeGoldenTest, PartsOfACutTextGiveTheTokensOfTheWhole) {
  const std::unique_ptr<Tokenizer> tokenizer = Load(GetParam());
  const std::string text = Contents("make_golden.py");
  const std::vector<int32_t> whole = EncodeAll(*tokenizer, text).value();
  int cuts = 0;
  for (size_t limit = 1; limit < text.size(); limit += 97) {
    const size_t cut = tokenizer->LastCut(absl::string_view(text).substr(0, limit));
    if (cut == 0) continue;
    ++cuts;
    std::vector<int32_t> parts = EncodeAll(*tokenizer, text.substr(0, cut)).value();
    const std::vector<int32_t> rest = EncodeAll(*tokenizer, text.substr(cut)).value();
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole) << "cut at " << cut;
  }
  EXPECT_GT(cuts, 20);
}

INSTANTIATE_TEST_SUITE_P(All, BpeGoldenTest, ::testing::Values("gpt2", "llama3", "qwen2"),
                         [](const auto& info) { return info.param; });

TEST(BpeTokenizer, LeavesSpecialTokensOutOfTheText) {
  const std::unique_ptr<Tokenizer> tokenizer = Load("llama3");
  EXPECT_EQ(tokenizer->end_of_document(), 0);
  const std::vector<int32_t> tokens = EncodeAll(*tokenizer, "a<|endoftext|>b").value();
  EXPECT_THAT(tokens, testing::Contains(0));
  EXPECT_EQ(tokenizer->Decode(tokens).value(), "ab");
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{5000}).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(BpeTokenizer, MergesALongWordInReasonableTime) {
  const std::string word(1 << 20, 'a');
  const std::unique_ptr<Tokenizer> tokenizer = Load("gpt2");
  EXPECT_EQ(tokenizer->Decode(EncodeAll(*tokenizer, word).value()).value(), word);
}

// A good tokenizer.json with one value replaced.
std::string ErrorWith(const std::string& pointer, const json& value) {
  json changed = json::parse(Contents("llama3/tokenizer.json"));
  changed[json::json_pointer(pointer)] = value;
  TemporaryDirectory directory;
  directory.Put("tokenizer.json", changed.dump());
  const absl::Status status = LoadTokenizer(directory.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(BpeTokenizer, RefusesByNameWhatItDoesNotDo) {
  EXPECT_THAT(ErrorWith("/model/type", "WordPiece"), HasSubstr("tokenizer.json: model.type: model \"WordPiece\""));
  EXPECT_THAT(ErrorWith("/model/byte_fallback", true), HasSubstr("model.byte_fallback: true is not supported"));
  EXPECT_THAT(ErrorWith("/model/end_of_word_suffix", "</w>"), HasSubstr("model.end_of_word_suffix: \"</w>\""));
  EXPECT_THAT(ErrorWith("/normalizer", {{"type", "Lowercase"}}),
              HasSubstr("normalizer.type: normalizer \"Lowercase\""));
  EXPECT_THAT(ErrorWith("/pre_tokenizer", {{"type", "Metaspace"}}), HasSubstr("pre-tokenizer \"Metaspace\""));
  EXPECT_THAT(ErrorWith("/pre_tokenizer/pretokenizers/0/behavior", "Removed"),
              HasSubstr("pre_tokenizer.pretokenizers[0].behavior: \"Removed\""));
  EXPECT_THAT(ErrorWith("/added_tokens/0/lstrip", true), HasSubstr("added_tokens[0].lstrip: true"));
}

TEST(BpeTokenizer, NamesFileAndPathOfWhatIsWrong) {
  EXPECT_THAT(ErrorWith("/model/merges/3", json::array({"q", "nonesuch"})),
              HasSubstr("model.merges[3]: \"nonesuch\" is no token of the vocabulary"));
  EXPECT_THAT(ErrorWith("/model/vocab/a", "one"), HasSubstr("model.vocab.a: expected an integer"));
  EXPECT_THAT(ErrorWith("/model/vocab/a", 3), HasSubstr("token 3 is also"));
  EXPECT_THAT(ErrorWith("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(x"), HasSubstr("pattern.Regex: the regular"));
  TemporaryDirectory directory;
  directory.Put("vocab.json", Contents("gpt2/vocab.json"));
  directory.Put("merges.txt", "#version: 0.2\ni n\ni n g\n");
  EXPECT_EQ(LoadTokenizer(directory.path()).status().message(),
            directory.File("merges.txt") + ":3: expected two words with a space between");
  directory.Put("vocab.json", "{\"a\": 0, \"<|endoftext|>\": 1}");
  directory.Put("merges.txt", "");
  EXPECT_THAT(std::string(LoadTokenizer(directory.path()).status().message()),
              HasSubstr("vocab.json: byte 0 (\"\xC4\x80\") is no token"));
  directory.Put("vocab.json", "{\"a\": 0");
  EXPECT_THAT(std::string(LoadTokenizer(directory.path()).status().message()),
              HasSubstr("vocab.json: not valid JSON at byte 8"));
  TemporaryDirectory empty;
  EXPECT_EQ(LoadTokenizer(empty.path()).status().code(), absl::StatusCode::kNotFound);
}

TEST(MakeTokenizer, KnowsTokenizersByName) {
  EXPECT_EQ((*MakeTokenizer("bytes"))->vocab(), 257);
  EXPECT_EQ((*MakeTokenizer(absl::StrCat("bpe:", kFolder, "gpt2")))->vocab(), 420);
  EXPECT_THAT(std::string(MakeTokenizer("words").status().message()), HasSubstr("unknown tokenizer \"words\""));
}

TEST(MakeTokenizer, LoadsTheFilesOfTheByteTokenizer) {
  const std::unique_ptr<Tokenizer> bytes = MakeTokenizer("bytes").value();
  TemporaryDirectory directory;
  ASSERT_TRUE(WriteTokenizer(*bytes, directory.path()).ok());
  const std::unique_ptr<Tokenizer> loaded = LoadTokenizer(directory.path()).value();
  EXPECT_EQ(loaded->vocab(), 257);
  EXPECT_EQ(loaded->end_of_document(), 256);
  EXPECT_EQ(EncodeAll(*loaded, "Bytes \xFF!").value(), EncodeAll(*bytes, "Bytes \xFF!").value());
}

}  // namespace
}  // namespace muster
