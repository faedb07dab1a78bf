#include "client/output.h"

#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"

namespace muster {
namespace {

void EmitYaml(const nlohmann::ordered_json& value, YAML::Emitter& out) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& item : value.items()) {
      out << YAML::Key << item.key() << YAML::Value;
      EmitYaml(item.value(), out);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    if (value.empty()) out << YAML::Flow;
    out << YAML::BeginSeq;
    for (const auto& item : value) EmitYaml(item, out);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    // Quoted, so that "7" and "true" stay strings.
    out << YAML::DoubleQuoted << value.get<std::string>();
  } else {
    out << value.dump();
  }
}

void AppendPadded(std::string& line, const std::string& cell, size_t width, Table::Align align) {
  const std::string padding(width - DisplayWidth(cell), ' ');
  if (align == Table::Align::kRight) {
    absl::StrAppend(&line, padding, cell);
  } else {
    absl::StrAppend(&line, cell, padding);
  }
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  MUSTER_CHECK(status.ok(), status.ToString());
  return json;
}

std::string ToYaml(const google::protobuf::Message& message) {
  return JsonToYaml(nlohmann::ordered_json::parse(ToJson(message)));
}

std::string JsonToYaml(const nlohmann::ordered_json& json) {
  YAML::Emitter out;
  EmitYaml(json, out);
  return absl::StrCat(out.c_str(), "\n");
}

void Table::AddRow(std::vector<std::string> cells) {
  MUSTER_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::ToString() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = DisplayWidth(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[i]));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += "  ";
      AppendPadded(line, cells[i], widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  add_line(titles);
  for (const auto& row : rows_) add_line(row);
  return text;
}

size_t DisplayWidth(absl::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

std::string FormatCount(int64_t value) {
  std::string digits = absl::StrCat(std::abs(value));
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), 1, ',');
  return value < 0 ? absl::StrCat("-", digits) : digits;
}

std::string FormatRate(double per_second) {
  if (per_second >= 9999.5) return absl::StrFormat("%.1fk", per_second / 1000);
  if (per_second >= 100) return FormatCount(std::llround(per_second));
  return absl::StrFormat("%.1f", per_second);
}

}  // namespace muster
