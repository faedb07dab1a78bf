// Resources as text: protobuf JSON, the same as YAML, and aligned tables.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "nlohmann/json_fwd.hpp"

namespace muster {

// Protobuf JSON with the schema's own snake_case names and all primitive fields, indented, with a newline at the end.
std::string ToJson(const google::protobuf::Message& message);

// The same content as YAML.
std::string ToYaml(const google::protobuf::Message& message);
std::string JsonToYaml(const nlohmann::ordered_json& json);

// Columns padded to their widest cell (in terminal columns, UTF-8), two spaces between, no trailing blanks.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: as many cells as columns.
  void AddRow(std::vector<std::string> cells);
  std::string ToString() const;

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Terminal columns of UTF-8 text, colour sequences not counted.
size_t DisplayWidth(absl::string_view text);

// 1,313,626,112
std::string FormatCount(int64_t value);
// 41.3k, 8,412, 0.71: for throughputs and losses at a glance.
std::string FormatRate(double per_second);

}  // namespace muster
