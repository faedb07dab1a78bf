#include "common/formats/byte_tokenizer.h"

#include <numeric>

#include "common/formats/byte_alphabet.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(ByteTokenizer, EveryByteIsItsOwnTokenAndComesBack) {
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  const ByteTokenizer tokenizer;
  std::vector<int32_t> tokens = EncodeAll(tokenizer, all).value();
  ASSERT_EQ(tokens.size(), 256u);
  for (int32_t byte = 0; byte < 256; ++byte) EXPECT_EQ(tokens[static_cast<size_t>(byte)], byte);
  tokens.push_back(tokenizer.end_of_document());
  EXPECT_EQ(tokenizer.Decode(tokens).value(), all);
}

TEST(ByteTokenizer, RefusesATokenOutsideItsVocabulary) {
  const std::vector<int32_t> tokens = {65, 257};
  const absl::Status status = ByteTokenizer().Decode(tokens).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("token 257 is outside the vocabulary of 257"));
}

TEST(ByteTokenizer, ItsFilesGiveEveryByteItsOwnToken) {
  const std::vector<TokenizerFile> files = ByteTokenizer().Files();
  ASSERT_EQ(files[0].name, "tokenizer.json");
  const nlohmann::json vocab = nlohmann::json::parse(files[0].contents).at("model").at("vocab");
  ASSERT_EQ(vocab.size(), 256u);
  for (const auto& [word, token] : vocab.items()) {
    EXPECT_EQ(BytesOfWord(word), std::string(1, static_cast<char>(token.get<int>())));
  }
}

TEST(ByteAlphabet, IsThatOfGpt2) {
  EXPECT_EQ(ByteAlphabet()['a'], "a");
  EXPECT_EQ(ByteAlphabet()[' '], "\xC4\xA0");   // U+0120, as in every GPT-2 vocabulary
  EXPECT_EQ(ByteAlphabet()['\n'], "\xC4\x8A");  // U+010A
  EXPECT_EQ(ByteAlphabet()[173], "\xC5\x83");   // U+0143, the last
  EXPECT_EQ(BytesOfWord("a b"), std::nullopt);
  EXPECT_EQ(BytesOfWord("\xE4\xBD\xA0"), std::nullopt);
}

}  // namespace
}  // namespace muster
