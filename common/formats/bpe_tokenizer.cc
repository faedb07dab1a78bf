#include "common/formats/bpe_tokenizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <queue>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/formats/byte_alphabet.h"

namespace muster {
namespace {

constexpr size_t kRun = 16384;  // tokens handed over at a time

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Text that is not UTF-8 stays as it is.
std::string Composed(absl::string_view text) {
  utf8proc_uint8_t* composed = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &composed, options);
  if (size < 0) return std::string(text);
  std::string result(reinterpret_cast<const char*>(composed), static_cast<size_t>(size));
  std::free(composed);
  return result;
}

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

// What one Encode works in.
struct BpeTokenizer::Scratch {
  // A token of the word, linked to those that are left of it.
  struct Symbol {
    int32_t token;
    int32_t previous;
    int32_t next;  // -1 at the ends; a symbol that was merged away has token -1
  };
  struct Candidate {
    int32_t rank;
    int32_t left;  // symbol
    int32_t left_token;
    int32_t right_token;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
  };

  std::vector<Symbol> symbols;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  std::vector<int32_t> tokens;  // done and not yet handed over
};

absl::StatusOr<std::unique_ptr<BpeTokenizer>> BpeTokenizer::Make(BpeVocabulary vocabulary) {
  MUSTER_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer, PreTokenizer::Make(vocabulary.split_expressions));
  std::unique_ptr<BpeTokenizer> tokenizer(new BpeTokenizer(std::move(vocabulary), std::move(pre_tokenizer)));
  MUSTER_RETURN_IF_ERROR(tokenizer->IndexWords());
  MUSTER_RETURN_IF_ERROR(tokenizer->IndexMerges());
  tokenizer->IndexAdded();
  return tokenizer;
}

absl::Status BpeTokenizer::IndexWords() {
  int32_t largest = static_cast<int32_t>(vocabulary_.words.size()) - 1;
  for (const AddedToken& added : vocabulary_.added) largest = std::max(largest, added.id);
  text_of_.resize(static_cast<size_t>(largest) + 1);
  hidden_.resize(text_of_.size());
  byte_tokens_.fill(-1);
  for (size_t token = 0; token < vocabulary_.words.size(); ++token) {
    const std::string& word = vocabulary_.words[token];
    // A word outside the alphabet is one that no text makes: an added token, mostly.
    text_of_[token] = BytesOfWord(word).value_or(word);
    const std::string& bytes = text_of_[token];
    if (bytes.size() == 1) byte_tokens_[static_cast<unsigned char>(bytes[0])] = static_cast<int32_t>(token);
    if (vocabulary_.whole_words && !bytes.empty()) token_of_[bytes] = static_cast<int32_t>(token);
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte_tokens_[byte] >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("byte ", byte, " (\"", ByteAlphabet()[byte],
                                                   "\") is no token: the vocabulary is not one of byte-level BPE"));
  }
  return absl::OkStatus();
}

absl::Status BpeTokenizer::IndexMerges() {
  absl::flat_hash_map<absl::string_view, int32_t> token_of;
  for (size_t token = 0; token < vocabulary_.words.size(); ++token) {
    if (!vocabulary_.words[token].empty()) token_of[vocabulary_.words[token]] = static_cast<int32_t>(token);
  }
  for (size_t rank = 0; rank < vocabulary_.merges.size(); ++rank) {
    const auto& [left, right] = vocabulary_.merges[rank];
    const std::string merged =
        absl::StrCat(vocabulary_.words[static_cast<size_t>(left)], vocabulary_.words[static_cast<size_t>(right)]);
    const auto found = token_of.find(merged);
    if (found == token_of.end()) {
      return absl::InvalidArgumentError(absl::StrCat("merge ", rank, " makes \"", merged, "\", which is no token"));
    }
    merges_.insert({PairKey(left, right), Merge{static_cast<int32_t>(rank), found->second}});
  }
  vocabulary_.merges.clear();
  return absl::OkStatus();
}

void BpeTokenizer::IndexAdded() {
  for (const AddedToken& added : vocabulary_.added) {
    text_of_[static_cast<size_t>(added.id)] = added.text;
    hidden_[static_cast<size_t>(added.id)] = added.special;
    added_by_first_byte_[static_cast<unsigned char>(added.text[0])].push_back(added);
  }
  for (std::vector<AddedToken>& group : added_by_first_byte_) {
    std::stable_sort(group.begin(), group.end(),
                     [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
  }
}

const AddedToken* BpeTokenizer::AddedAt(absl::string_view text) const {
  for (const AddedToken& added : added_by_first_byte_[static_cast<unsigned char>(text[0])]) {
    if (absl::StartsWith(text, added.text)) return &added;
  }
  return nullptr;
}

absl::Status BpeTokenizer::Encode(absl::string_view text, Sink sink) const {
  Scratch scratch;
  const auto hand_over = [&] {
    const absl::Status status = scratch.tokens.empty() ? absl::OkStatus() : sink(scratch.tokens);
    scratch.tokens.clear();
    return status;
  };
  size_t plain = 0;  // where the text since the last added token begins
  for (size_t i = 0; i < text.size();) {
    const AddedToken* added = AddedAt(text.substr(i));
    if (added == nullptr) {
      ++i;
      continue;
    }
    MUSTER_RETURN_IF_ERROR(EncodePlain(text.substr(plain, i - plain), scratch));
    scratch.tokens.push_back(added->id);
    i += added->text.size();
    plain = i;
    if (scratch.tokens.size() >= kRun) MUSTER_RETURN_IF_ERROR(hand_over());
  }
  MUSTER_RETURN_IF_ERROR(EncodePlain(text.substr(plain), scratch));
  return hand_over();
}

absl::Status BpeTokenizer::EncodePlain(absl::string_view text, Scratch& scratch) const {
  const auto encode = [&](absl::string_view word) { EncodeWord(word, scratch); };
  if (!vocabulary_.compose || IsAscii(text)) return pre_tokenizer_.Split(text, encode);
  return pre_tokenizer_.Split(Composed(text), encode);
}

const BpeTokenizer::Merge* BpeTokenizer::FindMerge(int32_t left, int32_t right) const {
  const auto found = merges_.find(PairKey(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BpeTokenizer::EncodeWord(absl::string_view word, Scratch& scratch) const {
  if (vocabulary_.whole_words) {
    if (const auto found = token_of_.find(word); found != token_of_.end()) {
      scratch.tokens.push_back(found->second);
      return;
    }
  }
  std::vector<Scratch::Symbol>& symbols = scratch.symbols;
  const int32_t size = static_cast<int32_t>(word.size());
  symbols.clear();
  for (int32_t i = 0; i < size; ++i) {
    symbols.push_back(
        {byte_tokens_[static_cast<unsigned char>(word[static_cast<size_t>(i)])], i - 1, i + 1 < size ? i + 1 : -1});
  }
  const auto symbol = [&symbols](int32_t i) -> Scratch::Symbol& { return symbols[static_cast<size_t>(i)]; };
  const auto propose = [&](int32_t left) {
    if (left < 0 || symbol(left).next < 0) return;
    const int32_t left_token = symbol(left).token;
    const int32_t right_token = symbol(symbol(left).next).token;
    if (const Merge* merge = FindMerge(left_token, right_token)) {
      scratch.candidates.push({merge->rank, left, left_token, right_token});
    }
  };
  for (int32_t i = 0; i + 1 < size; ++i) propose(i);
  while (!scratch.candidates.empty()) {
    const Scratch::Candidate best = scratch.candidates.top();
    scratch.candidates.pop();
    Scratch::Symbol& left = symbol(best.left);
    // One of the two may have been merged meanwhile.
    if (left.token != best.left_token || left.next < 0 || symbol(left.next).token != best.right_token) continue;
    Scratch::Symbol& right = symbol(left.next);
    left.token = FindMerge(best.left_token, best.right_token)->token;
    left.next = right.next;
    right.token = -1;
    if (left.next >= 0) symbol(left.next).previous = best.left;
    propose(left.previous);
    propose(best.left);
  }
  for (int32_t i = 0; i >= 0 && size > 0; i = symbol(i).next) scratch.tokens.push_back(symbol(i).token);
}

absl::StatusOr<std::string> BpeTokenizer::Decode(absl::Span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocab() || text_of_[static_cast<size_t>(token)].empty()) {
      return absl::OutOfRangeError(absl::StrCat("token ", token, " is not in the vocabulary of ", vocab()));
    }
    if (!hidden_[static_cast<size_t>(token)]) text += text_of_[static_cast<size_t>(token)];
  }
  return text;
}

// A cut between a letter and a space, unless an added token could lie across it.
size_t BpeTokenizer::LastCut(absl::string_view text) const {
  if (!pre_tokenizer_.CutsBeforeSpaces()) return 0;
  for (const AddedToken& added : vocabulary_.added) {
    if (absl::StrContains(added.text, ' ')) return 0;
  }
  for (size_t i = text.size(); i-- > 1;) {
    if (text[i] == ' ' && IsAsciiLetter(text[i - 1])) return i;
  }
  return 0;
}

}  // namespace muster
