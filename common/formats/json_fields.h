// Reads JSON strictly: repeated keys, wrong types and integers that do not fit are errors that name the file and the
// field path, "manifest.json: tensors[3].boxes[0].dims: expected a list of integers". Private to common/formats. Any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster {

// INVALID_ARGUMENT with the byte offset of a syntax error, or the name of a repeated key.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view file);

// One value with the path that leads to it. Points into the parsed document, which must outlive it.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string file, std::string path)
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  absl::StatusOr<JsonField> Member(absl::string_view key) const;  // missing is an error
  absl::StatusOr<std::optional<JsonField>> OptionalMember(absl::string_view key) const;
  absl::StatusOr<std::vector<JsonField>> Elements() const;
  absl::StatusOr<std::vector<std::pair<std::string, JsonField>>> Members() const;  // of any keys
  bool is_string() const { return value_->is_string(); }

  absl::StatusOr<int64_t> Integer() const;  // not negative
  absl::StatusOr<double> Number() const;
  absl::StatusOr<bool> Boolean() const;
  absl::StatusOr<std::string> String() const;
  absl::StatusOr<std::vector<int64_t>> Integers() const;  // none negative
  absl::StatusOr<std::map<std::string, std::string>> Strings() const;

  // Only these keys may be there.
  absl::Status CheckKeys(std::initializer_list<absl::string_view> known) const;

  absl::Status Error(absl::string_view problem) const;

 private:
  std::string Below(absl::string_view key) const;

  const nlohmann::json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace muster
