#include "common/spec/field_rules.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

constexpr size_t kLongestName = 63;
constexpr size_t kLongestText = 4096;

bool IsName(absl::string_view text) {
  if (text.empty() || text.size() > kLongestName || !std::isalnum(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

std::string WithoutIndices(absl::string_view path) {
  std::string result;
  bool inside = false;
  for (char c : path) {
    if (c == '[') inside = true;
    if (!inside) result.push_back(c);
    if (c == ']') inside = false;
  }
  return result;
}

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

bool NumberRange::Contains(double value) const {
  const bool above = above_least ? value > least : value >= least;
  const bool below = below_most ? value < most : value <= most;
  return above && below;
}

std::string NumberRange::ToString() const {
  if (!above_least && !below_most) return absl::StrCat("from ", least, " to ", most);
  return absl::StrCat(above_least ? "above " : "at least ", least, " and ", below_most ? "below " : "at most ", most);
}

const FieldRule* FindFieldRule(absl::string_view path) {
  const std::string wanted = WithoutIndices(path);
  for (const FieldRule& rule : FieldRules()) {
    if (wanted == rule.path) return &rule;
  }
  return nullptr;
}

std::string FileKey(const google::protobuf::FieldDescriptor& field) {
  const absl::string_view name = field.name();
  return std::string(absl::EndsWith(name, "_bytes") ? name.substr(0, name.size() - 6) : name);
}

const google::protobuf::FieldDescriptor* FieldOfKey(const google::protobuf::Descriptor& message,
                                                    absl::string_view key) {
  for (int i = 0; i < message.field_count(); ++i) {
    if (FileKey(*message.field(i)) == key) return message.field(i);
  }
  return nullptr;
}

std::string CheckNumber(const FieldRule& rule, double value) {
  if (rule.range.Contains(value)) return "";
  return absl::StrCat(value, " is out of range: it must be ", rule.range.ToString(),
                      rule.may_be_auto ? ", or auto" : "");
}

std::string CheckText(const FieldRule& rule, absl::string_view value) {
  if (!rule.choices.empty()) {
    if (std::find(rule.choices.begin(), rule.choices.end(), value) != rule.choices.end()) return "";
    return absl::StrCat("\"", value, "\" is not one of ", absl::StrJoin(rule.choices, ", "));
  }
  if (value.size() > kLongestText) return absl::StrCat("is longer than ", kLongestText, " bytes");
  if (value.find('\0') != absl::string_view::npos) return "has a zero byte in it";
  if (rule.text == TextKind::kName && !IsName(value)) {
    return absl::StrCat("\"", value, "\" is not a name: letters, digits, '-', '_' and '.', at most ", kLongestName,
                        ", beginning with a letter or digit");
  }
  if (rule.text == TextKind::kPath) {
    if (absl::StartsWith(value, "/"))
      return absl::StrCat("\"", value, "\" is absolute; paths are relative to the worker's root");
    for (absl::string_view part : absl::StrSplit(value, '/')) {
      if (part == "..") return absl::StrCat("\"", value, "\" leaves the worker's root by \"..\"");
    }
  }
  return "";
}

bool IsLater(const FieldRule& rule, absl::string_view value) {
  return std::find(rule.later.begin(), rule.later.end(), value) != rule.later.end();
}

std::string NearestWord(absl::string_view word, const std::vector<std::string>& candidates) {
  std::string nearest;
  size_t fewest = word.size() > 5 ? 4 : 3;  // one less is allowed
  for (const std::string& candidate : candidates) {
    const size_t edits = EditDistance(word, candidate);
    if (edits < fewest && edits < candidate.size()) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace muster
