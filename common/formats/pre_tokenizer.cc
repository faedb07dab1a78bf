#include "common/formats/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Steps of one match: words take a few hundred, only an expression that backtracks without end takes more.
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr size_t kSmallestStack = size_t{32} << 10;
constexpr size_t kLargestStack = size_t{8} << 20;

std::string ErrorText(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

template <auto free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};

}  // namespace

const char kGpt2Words[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char kLlama3Words[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char kQwen2Words[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

class PreTokenizer::Expression {
 public:
  static absl::StatusOr<std::unique_ptr<Expression>> Compile(const std::string& text) {
    int error = 0;
    size_t offset = 0;
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    auto expression = std::make_unique<Expression>();
    expression->code_.reset(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options, &error, &offset, nullptr));
    if (expression->code_ == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the regular expression is wrong at its byte ", offset, ": ", ErrorText(error)));
    }
    if (const int failed = pcre2_jit_compile(expression->code_.get(), PCRE2_JIT_COMPLETE); failed != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the regular expression cannot be compiled to machine code: ", ErrorText(failed)));
    }
    return expression;
  }

  absl::Status Split(absl::string_view text, absl::FunctionRef<void(absl::string_view)> piece) const {
    // One stack and one result a call, so that calls do not share them.
    const std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>> match(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    const std::unique_ptr<pcre2_match_context, Freer<pcre2_match_context_free>> context(
        pcre2_match_context_create(nullptr));
    const std::unique_ptr<pcre2_jit_stack, Freer<pcre2_jit_stack_free>> stack(
        pcre2_jit_stack_create(kSmallestStack, kLargestStack, nullptr));
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());

    size_t done = 0;
    size_t from = 0;
    while (from < text.size()) {
      const int matches = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, 0,
                                      match.get(), context.get());
      if (matches == PCRE2_ERROR_NOMATCH) break;
      if (matches < 0) {
        return absl::InvalidArgumentError(absl::StrCat("the tokenizer's regular expression fails at byte ", from,
                                                       " of a text: ", ErrorText(matches)));
      }
      const size_t begin = pcre2_get_ovector_pointer(match.get())[0];
      const size_t end = pcre2_get_ovector_pointer(match.get())[1];
      if (end <= begin) {  // an empty match splits nothing; \K could even turn it around
        from = std::max(from, end) + 1;
        while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
        continue;
      }
      if (begin > done) piece(text.substr(done, begin - done));
      const size_t first = std::max(begin, done);  // a lookbehind with \K may reach back
      if (end > first) piece(text.substr(first, end - first));
      done = std::max(done, end);
      from = std::max(from + 1, end);
    }
    if (done < text.size()) piece(text.substr(done));
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<pcre2_code, Freer<pcre2_code_free>> code_;
};

absl::StatusOr<PreTokenizer> PreTokenizer::Make(const std::vector<std::string>& expressions) {
  std::vector<std::unique_ptr<Expression>> compiled;
  bool known = !expressions.empty();
  for (const std::string& text : expressions) {
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Expression> expression, Expression::Compile(text));
    compiled.push_back(std::move(expression));
    known = known && (text == kGpt2Words || text == kLlama3Words || text == kQwen2Words);
  }
  return PreTokenizer(std::move(compiled), known);
}

PreTokenizer::PreTokenizer(std::vector<std::unique_ptr<Expression>> expressions, bool cuts_before_spaces)
    : expressions_(std::move(expressions)), cuts_before_spaces_(cuts_before_spaces) {}

PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

absl::Status PreTokenizer::Split(absl::string_view text, absl::FunctionRef<void(absl::string_view)> word) const {
  if (expressions_.empty()) {
    if (!text.empty()) word(text);
    return absl::OkStatus();
  }
  std::vector<absl::string_view> pieces = {text};
  for (size_t i = 0; i + 1 < expressions_.size(); ++i) {
    std::vector<absl::string_view> smaller;
    const auto keep = [&smaller](absl::string_view piece) { smaller.push_back(piece); };
    for (const absl::string_view piece : pieces) MUSTER_RETURN_IF_ERROR(expressions_[i]->Split(piece, keep));
    pieces = std::move(smaller);
  }
  for (const absl::string_view piece : pieces) MUSTER_RETURN_IF_ERROR(expressions_.back()->Split(piece, word));
  return absl::OkStatus();
}

}  // namespace muster
