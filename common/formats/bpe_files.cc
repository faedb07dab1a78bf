// The reading half of bpe_tokenizer.h.
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/formats/bpe_tokenizer.h"
#include "common/formats/json_fields.h"

namespace muster {
namespace {

constexpr int64_t kLargestToken = int64_t{1} << 24;  // a larger number is damage and would only cost memory
constexpr char kTokenizerJson[] = "tokenizer.json";
constexpr char kVocabJson[] = "vocab.json";
constexpr char kMergesText[] = "merges.txt";
constexpr char kConfigJson[] = "tokenizer_config.json";
// What base models call their end-of-document token, where no configuration names it.
constexpr const char* kUsualNames[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eot_id|>"};

using TokenOf = absl::flat_hash_map<std::string, int32_t>;

absl::StatusOr<int32_t> TokenNumber(const JsonField& field) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t number, field.Integer());
  if (number >= kLargestToken) return field.Error(absl::StrCat(number, " is more than any vocabulary has"));
  return static_cast<int32_t>(number);
}

absl::StatusOr<TokenOf> ReadWords(const JsonField& vocab, BpeVocabulary& out) {
  TokenOf token_of;
  MUSTER_ASSIGN_OR_RETURN(const auto members, vocab.Members());
  for (const auto& member : members) {
    if (member.first.empty()) return vocab.Error("a token has no text");
    MUSTER_ASSIGN_OR_RETURN(const int32_t token, TokenNumber(member.second));
    if (static_cast<size_t>(token) >= out.words.size()) out.words.resize(static_cast<size_t>(token) + 1);
    std::string& word = out.words[static_cast<size_t>(token)];
    if (!word.empty()) return member.second.Error(absl::StrCat("token ", token, " is also \"", word, "\""));
    word = member.first;
    token_of[member.first] = token;
  }
  return token_of;
}

// The two tokens of a merge, or what is wrong with it.
absl::StatusOr<std::pair<int32_t, int32_t>> MergeOf(absl::string_view left, absl::string_view right,
                                                    const TokenOf& token_of) {
  for (const absl::string_view part : {left, right}) {
    if (token_of.contains(part)) continue;
    return absl::InvalidArgumentError(absl::StrCat("\"", part, "\" is no token of the vocabulary"));
  }
  return std::make_pair(token_of.at(left), token_of.at(right));
}

absl::Status ReadMerges(const JsonField& merges, const TokenOf& token_of, BpeVocabulary& out) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<JsonField> elements, merges.Elements());
  for (const JsonField& element : elements) {
    std::vector<std::string> parts;  // "a b", or since 2024 ["a", "b"]
    if (element.is_string()) {
      MUSTER_ASSIGN_OR_RETURN(const std::string text, element.String());
      parts = absl::StrSplit(text, ' ');
    } else {
      MUSTER_ASSIGN_OR_RETURN(const std::vector<JsonField> pair, element.Elements());
      for (const JsonField& part : pair) {
        MUSTER_ASSIGN_OR_RETURN(parts.emplace_back(), part.String());
      }
    }
    if (parts.size() != 2) return element.Error("expected two words");
    const auto merge = MergeOf(parts[0], parts[1], token_of);
    if (!merge.ok()) return element.Error(merge.status().message());
    out.merges.push_back(*merge);
  }
  return absl::OkStatus();
}

absl::Status RefuseTrue(const JsonField& object, absl::string_view key) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> field, object.OptionalMember(key));
  if (!field.has_value()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const bool value, field->Boolean());
  return value ? field->Error("true is not supported; false is") : absl::OkStatus();
}

absl::Status RefuseText(const JsonField& object, absl::string_view key) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> field, object.OptionalMember(key));
  if (!field.has_value()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const std::string value, field->String());
  return value.empty() ? absl::OkStatus() : field->Error(absl::StrCat("\"", value, "\" is not supported; null is"));
}

absl::Status ReadModel(const JsonField& model, BpeVocabulary& out) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> type, model.OptionalMember("type"));
  if (type.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string name, type->String());
    if (name != "BPE") return type->Error(absl::StrCat("model \"", name, "\" is not supported; BPE is"));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> dropout, model.OptionalMember("dropout"));
  if (dropout.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(const double value, dropout->Number());
    if (value != 0) return dropout->Error("merges dropped at random are not supported; null is");
  }
  MUSTER_RETURN_IF_ERROR(RefuseText(model, "continuing_subword_prefix"));
  MUSTER_RETURN_IF_ERROR(RefuseText(model, "end_of_word_suffix"));
  MUSTER_RETURN_IF_ERROR(RefuseTrue(model, "byte_fallback"));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> whole_words, model.OptionalMember("ignore_merges"));
  if (whole_words.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(out.whole_words, whole_words->Boolean());
  }
  MUSTER_ASSIGN_OR_RETURN(const JsonField vocab, model.Member("vocab"));
  MUSTER_ASSIGN_OR_RETURN(const TokenOf token_of, ReadWords(vocab, out));
  MUSTER_ASSIGN_OR_RETURN(const JsonField merges, model.Member("merges"));
  return ReadMerges(merges, token_of, out);
}

absl::Status ReadNormalizer(const JsonField& normalizer, BpeVocabulary& out) {
  MUSTER_ASSIGN_OR_RETURN(const JsonField type, normalizer.Member("type"));
  MUSTER_ASSIGN_OR_RETURN(const std::string name, type.String());
  if (name != "NFC") return type.Error(absl::StrCat("normalizer \"", name, "\" is not supported; null and NFC are"));
  out.compose = true;
  return absl::OkStatus();
}

absl::Status ReadSplit(const JsonField& split, BpeVocabulary& out) {
  MUSTER_ASSIGN_OR_RETURN(const JsonField behaviour, split.Member("behavior"));
  MUSTER_ASSIGN_OR_RETURN(const std::string name, behaviour.String());
  if (name != "Isolated") return behaviour.Error(absl::StrCat("\"", name, "\" is not supported; Isolated is"));
  MUSTER_ASSIGN_OR_RETURN(const JsonField pattern, split.Member("pattern"));
  MUSTER_ASSIGN_OR_RETURN(const JsonField expression, pattern.Member("Regex"));
  MUSTER_ASSIGN_OR_RETURN(out.split_expressions.emplace_back(), expression.String());
  const absl::Status status = PreTokenizer::Make({out.split_expressions.back()}).status();
  return status.ok() ? status : expression.Error(status.message());
}

absl::Status ReadByteLevel(const JsonField& byte_level, BpeVocabulary& out) {
  MUSTER_RETURN_IF_ERROR(RefuseTrue(byte_level, "add_prefix_space"));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> use_regex, byte_level.OptionalMember("use_regex"));
  bool by_regex = true;  // the default of older files, which have no such key
  if (use_regex.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(by_regex, use_regex->Boolean());
  }
  if (by_regex) out.split_expressions.push_back(kGpt2Words);
  return absl::OkStatus();
}

// Any number of Split, and ByteLevel last.
absl::Status ReadPreTokenizer(const JsonField& field, BpeVocabulary& out) {
  MUSTER_ASSIGN_OR_RETURN(const JsonField type, field.Member("type"));
  MUSTER_ASSIGN_OR_RETURN(const std::string name, type.String());
  std::vector<JsonField> parts = {field};
  if (name == "Sequence") {
    MUSTER_ASSIGN_OR_RETURN(const JsonField list, field.Member("pretokenizers"));
    MUSTER_ASSIGN_OR_RETURN(parts, list.Elements());
  }
  bool byte_level = false;
  for (const JsonField& part : parts) {
    MUSTER_ASSIGN_OR_RETURN(const JsonField part_type, part.Member("type"));
    MUSTER_ASSIGN_OR_RETURN(const std::string part_name, part_type.String());
    if (byte_level) return part_type.Error("nothing may follow ByteLevel");
    if (part_name == "Split") {
      MUSTER_RETURN_IF_ERROR(ReadSplit(part, out));
    } else if (part_name == "ByteLevel") {
      byte_level = true;
      MUSTER_RETURN_IF_ERROR(ReadByteLevel(part, out));
    } else {
      return part_type.Error(
          absl::StrCat("pre-tokenizer \"", part_name, "\" is not supported; Split and ByteLevel are"));
    }
  }
  return byte_level ? absl::OkStatus() : field.Error("there is no ByteLevel: only byte-level BPE is supported");
}

absl::Status ReadAdded(const JsonField& list, BpeVocabulary& out) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<JsonField> elements, list.Elements());
  for (const JsonField& element : elements) {
    AddedToken added;
    MUSTER_ASSIGN_OR_RETURN(const JsonField content, element.Member("content"));
    MUSTER_ASSIGN_OR_RETURN(added.text, content.String());
    if (added.text.empty()) return content.Error("a token has no text");
    MUSTER_ASSIGN_OR_RETURN(const JsonField id, element.Member("id"));
    MUSTER_ASSIGN_OR_RETURN(added.id, TokenNumber(id));
    for (const char* key : {"lstrip", "rstrip", "single_word"}) MUSTER_RETURN_IF_ERROR(RefuseTrue(element, key));
    MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> special, element.OptionalMember("special"));
    if (special.has_value()) {
      MUSTER_ASSIGN_OR_RETURN(added.special, special->Boolean());
    }
    out.added.push_back(std::move(added));
  }
  return absl::OkStatus();
}

// The eos_token of tokenizer_config.json: a text, or an object with its content. "" without one.
absl::StatusOr<std::string> ConfiguredEnd(absl::string_view config, const std::string& path) {
  if (config.empty()) return std::string();
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(config, path));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> end, JsonField(json, path, "").OptionalMember("eos_token"));
  if (!end.has_value()) return std::string();
  if (end->is_string()) return end->String();
  MUSTER_ASSIGN_OR_RETURN(const JsonField content, end->Member("content"));
  return content.String();
}

// Finds the end-of-document token and makes it a special one.
absl::Status SetEnd(absl::string_view config, const std::string& directory, BpeVocabulary& out) {
  const auto find = [&out](absl::string_view text) -> int32_t {
    for (const AddedToken& added : out.added) {
      if (added.text == text) return added.id;
    }
    for (size_t token = 0; token < out.words.size(); ++token) {
      if (out.words[token] == text) return static_cast<int32_t>(token);
    }
    return -1;
  };
  const std::string config_path = absl::StrCat(directory, "/", kConfigJson);
  MUSTER_ASSIGN_OR_RETURN(std::string name, ConfiguredEnd(config, config_path));
  int32_t token = -1;
  if (!name.empty()) {
    token = find(name);
    if (token < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(config_path, ": eos_token: \"", name, "\" is no token of the vocabulary"));
    }
  }
  for (const char* usual : kUsualNames) {
    if (token >= 0) break;
    token = find(usual);
    name = usual;
  }
  if (token < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(config_path, ": there is no eos_token, and the vocabulary has none of the usual ones (",
                     kUsualNames[0], ", ", kUsualNames[1], ", ...); name the end-of-document token there"));
  }
  out.end_of_document = token;
  bool known = false;
  for (AddedToken& added : out.added) {
    if (added.id != token) continue;
    known = true;
    added.special = true;
  }
  if (!known) out.added.push_back({name, token, /*special=*/true});
  if (config.empty()) {
    const nlohmann::ordered_json made = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"eos_token", name}};
    out.files.push_back({kConfigJson, made.dump(1)});
  } else {
    out.files.push_back({kConfigJson, std::string(config)});
  }
  return absl::OkStatus();
}

// Reads one file of the directory; "" when it is not there.
absl::StatusOr<std::string> ReadIfThere(const std::string& directory, const char* name) {
  const std::string path = absl::StrCat(directory, "/", name);
  if (!PathExists(path)) return std::string();
  return ReadFile(path);
}

}  // namespace

absl::StatusOr<BpeVocabulary> ParseTokenizerJson(absl::string_view json, absl::string_view config,
                                                 const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kTokenizerJson);
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(json, path));
  const JsonField root(parsed, path, "");
  BpeVocabulary out;
  MUSTER_ASSIGN_OR_RETURN(const JsonField model, root.Member("model"));
  MUSTER_RETURN_IF_ERROR(ReadModel(model, out));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> normalizer, root.OptionalMember("normalizer"));
  if (normalizer.has_value()) MUSTER_RETURN_IF_ERROR(ReadNormalizer(*normalizer, out));
  MUSTER_ASSIGN_OR_RETURN(const JsonField pre_tokenizer, root.Member("pre_tokenizer"));
  MUSTER_RETURN_IF_ERROR(ReadPreTokenizer(pre_tokenizer, out));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<JsonField> added, root.OptionalMember("added_tokens"));
  if (added.has_value()) MUSTER_RETURN_IF_ERROR(ReadAdded(*added, out));
  out.files.push_back({kTokenizerJson, std::string(json)});
  MUSTER_RETURN_IF_ERROR(SetEnd(config, directory, out));
  return out;
}

absl::StatusOr<BpeVocabulary> ParseVocabAndMerges(absl::string_view vocab, absl::string_view merges,
                                                  absl::string_view config, const std::string& directory) {
  const std::string vocab_path = absl::StrCat(directory, "/", kVocabJson);
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(vocab, vocab_path));
  BpeVocabulary out;
  MUSTER_ASSIGN_OR_RETURN(const TokenOf token_of, ReadWords(JsonField(parsed, vocab_path, ""), out));
  int64_t line_number = 0;
  for (absl::string_view line : absl::StrSplit(merges, '\n')) {
    ++line_number;
    line = line.substr(0, line.find('\r'));
    if (line.empty() || (line_number == 1 && line[0] == '#')) continue;  // "#version: 0.2"
    const auto wrong = [&](absl::string_view problem) {
      return absl::InvalidArgumentError(absl::StrCat(directory, "/", kMergesText, ":", line_number, ": ", problem));
    };
    const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ');
    if (parts.size() != 2) return wrong("expected two words with a space between");
    const auto merge = MergeOf(parts[0], parts[1], token_of);
    if (!merge.ok()) return wrong(merge.status().message());
    out.merges.push_back(*merge);
  }
  out.split_expressions.push_back(kGpt2Words);
  out.files.push_back({kVocabJson, std::string(vocab)});
  out.files.push_back({kMergesText, std::string(merges)});
  MUSTER_RETURN_IF_ERROR(SetEnd(config, directory, out));
  return out;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadBpeTokenizer(const std::string& directory) {
  MUSTER_ASSIGN_OR_RETURN(const std::string config, ReadIfThere(directory, kConfigJson));
  MUSTER_ASSIGN_OR_RETURN(const std::string json, ReadIfThere(directory, kTokenizerJson));
  absl::StatusOr<BpeVocabulary> vocabulary;
  std::string source = kTokenizerJson;
  if (!json.empty()) {
    vocabulary = ParseTokenizerJson(json, config, directory);
  } else {
    if (!PathExists(absl::StrCat(directory, "/", kVocabJson))) {
      return absl::NotFoundError(
          absl::StrCat(directory, " has neither ", kTokenizerJson, " nor ", kVocabJson, " and ", kMergesText));
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string vocab, ReadFile(absl::StrCat(directory, "/", kVocabJson)));
    MUSTER_ASSIGN_OR_RETURN(const std::string merges, ReadFile(absl::StrCat(directory, "/", kMergesText)));
    vocabulary = ParseVocabAndMerges(vocab, merges, config, directory);
    source = kVocabJson;
  }
  if (!vocabulary.ok()) return vocabulary.status();
  auto tokenizer = BpeTokenizer::Make(*std::move(vocabulary));
  if (!tokenizer.ok()) {
    return absl::Status(tokenizer.status().code(),
                        absl::StrCat(directory, "/", source, ": ", tokenizer.status().message()));
  }
  return *std::move(tokenizer);
}

}  // namespace muster
