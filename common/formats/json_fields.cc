#include "common/formats/json_fields.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

using nlohmann::json;

absl::StatusOr<json> ParseJson(absl::string_view text, absl::string_view file) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string repeated;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && repeated.empty()) {
      const std::string& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) repeated = key;
    }
    return true;
  };
  json parsed;
  try {
    parsed = json::parse(text.data(), text.data() + text.size(), watch);
  } catch (const json::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": not valid JSON at byte ", error.byte));
  } catch (const json::exception& error) {  // a number that no double holds
    return absl::InvalidArgumentError(absl::StrCat(file, ": not valid JSON: ", error.what()));
  }
  if (!repeated.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": the key \"", repeated, "\" occurs twice in one object"));
  }
  return parsed;
}

absl::Status JsonField::Error(absl::string_view problem) const {
  return absl::InvalidArgumentError(path_.empty() ? absl::StrCat(file_, ": ", problem)
                                                  : absl::StrCat(file_, ": ", path_, ": ", problem));
}

std::string JsonField::Below(absl::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
}

absl::StatusOr<std::optional<JsonField>> JsonField::OptionalMember(absl::string_view key) const {
  if (!value_->is_object()) return Error("expected an object");
  const auto found = value_->find(std::string(key));
  if (found == value_->end() || found->is_null()) return std::optional<JsonField>();
  return std::optional<JsonField>(JsonField(*found, file_, Below(key)));
}

absl::StatusOr<JsonField> JsonField::Member(absl::string_view key) const {
  MUSTER_ASSIGN_OR_RETURN(std::optional<JsonField> member, OptionalMember(key));
  if (!member.has_value()) return Error(absl::StrCat("\"", key, "\" is missing"));
  return *std::move(member);
}

absl::StatusOr<std::vector<JsonField>> JsonField::Elements() const {
  if (!value_->is_array()) return Error("expected a list");
  std::vector<JsonField> elements;
  elements.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i)
    elements.emplace_back((*value_)[i], file_, absl::StrCat(path_, "[", i, "]"));
  return elements;
}

absl::StatusOr<std::vector<std::pair<std::string, JsonField>>> JsonField::Members() const {
  if (!value_->is_object()) return Error("expected an object");
  std::vector<std::pair<std::string, JsonField>> members;
  members.reserve(value_->size());
  for (const auto& item : value_->items()) {
    members.emplace_back(item.key(), JsonField(item.value(), file_, Below(item.key())));
  }
  return members;
}

absl::StatusOr<int64_t> JsonField::Integer() const {
  const bool fits = value_->is_number_unsigned() &&
                    value_->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!fits) return Error("expected an integer from 0 to 9223372036854775807");
  return value_->get<int64_t>();
}

absl::StatusOr<double> JsonField::Number() const {
  if (!value_->is_number()) return Error("expected a number");
  return value_->get<double>();
}

absl::StatusOr<bool> JsonField::Boolean() const {
  if (!value_->is_boolean()) return Error("expected true or false");
  return value_->get<bool>();
}

absl::StatusOr<std::string> JsonField::String() const {
  if (!value_->is_string()) return Error("expected a string");
  return value_->get<std::string>();
}

absl::StatusOr<std::vector<int64_t>> JsonField::Integers() const {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<JsonField> elements, Elements());
  std::vector<int64_t> values;
  values.reserve(elements.size());
  for (const JsonField& element : elements) {
    MUSTER_ASSIGN_OR_RETURN(const int64_t value, element.Integer());
    values.push_back(value);
  }
  return values;
}

absl::StatusOr<std::map<std::string, std::string>> JsonField::Strings() const {
  if (!value_->is_object()) return Error("expected an object");
  std::map<std::string, std::string> values;
  for (const auto& item : value_->items()) {
    MUSTER_ASSIGN_OR_RETURN(values[item.key()], JsonField(item.value(), file_, Below(item.key())).String());
  }
  return values;
}

absl::Status JsonField::CheckKeys(std::initializer_list<absl::string_view> known) const {
  if (!value_->is_object()) return Error("expected an object");
  for (const auto& item : value_->items()) {
    if (std::find(known.begin(), known.end(), absl::string_view(item.key())) == known.end()) {
      return Error(absl::StrCat("unknown key \"", item.key(), "\""));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
