#include "common/spec/yaml_reader.h"

#include <yaml-cpp/yaml.h>

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/spec/field_rules.h"
#include "common/spec/scalars.h"
#include "google/protobuf/duration.pb.h"

namespace muster {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

int LineOf(const YAML::Node& node) { return node.Mark().line + 1; }  // yaml-cpp counts from 0

std::string Join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

bool IsDuration(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type()->full_name() == google::protobuf::Duration::descriptor()->full_name();
}

// What is there instead of what was expected: "a list", "the text "two"".
std::string Found(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a map";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return absl::StrCat("the text \"", node.Scalar().substr(0, 80), "\"");
    default:
      return "nothing";
  }
}

// A scalar that YAML itself would not take for text.
bool LooksLikeNoText(absl::string_view text) {
  return ParseNumber(text).ok() || text == "true" || text == "false" || text == "null" || text == "~";
}

class Reader {
 public:
  YamlRead Take() { return std::move(read_); }

  void AddProblem(const char* code, const std::string& path, std::string message, std::string suggestion = "") {
    read_.problems.push_back({code, path, std::move(message), std::move(suggestion)});
  }

  void ReadMap(const YAML::Node& node, const std::string& path, Message* message) {
    if (!node.IsMap()) {
      AddProblem("WRONG_TYPE", path, absl::StrCat("must be a map of keys and values, is ", Found(node)));
      return;
    }
    std::set<std::string> seen;
    for (const auto& pair : node) {
      if (!pair.first.IsScalar()) {
        read_.lines.emplace(Join(path, "?"), LineOf(pair.first));
        AddProblem("UNKNOWN_KEY", Join(path, "?"), absl::StrCat("a key must be text, is ", Found(pair.first)));
        continue;
      }
      const std::string key = pair.first.Scalar();
      if (!seen.insert(key).second) {
        read_.lines[Join(path, key)] = LineOf(pair.first);
        AddProblem("DUPLICATE_KEY", Join(path, key), "is there twice", "keep one of the two");
        continue;
      }
      read_.lines.emplace(Join(path, key), LineOf(pair.first));
      const FieldDescriptor* field = FieldOfKey(*message->GetDescriptor(), key);
      if (field == nullptr) {
        ReportUnknownKey(path, key, *message->GetDescriptor());
      } else {
        ReadField(pair.second, Join(path, key), *field, message);
      }
    }
  }

 private:
  void ReportUnknownKey(const std::string& path, const std::string& key, const Descriptor& descriptor) {
    std::vector<std::string> known;
    for (int i = 0; i < descriptor.field_count(); ++i) known.push_back(FileKey(*descriptor.field(i)));
    std::string suggestion;
    const std::string nearest = NearestWord(key, known);
    if (!nearest.empty()) {
      suggestion = absl::StrCat("did you mean ", nearest, "?");
      read_.meant_paths.push_back(Join(path, nearest));
    } else if (const std::string elsewhere = PathOfKey(key); !elsewhere.empty()) {
      suggestion = absl::StrCat("its place is ", elsewhere);
      read_.meant_paths.push_back(elsewhere);
    }
    AddProblem("UNKNOWN_KEY", Join(path, key), "unknown key", suggestion);
  }

  // The first field of any section that has this key.
  static std::string PathOfKey(const std::string& key) {
    for (const FieldRule& rule : FieldRules()) {
      const std::vector<std::string> parts = absl::StrSplit(rule.path, '.');
      if (parts.back() == key) return rule.path;
    }
    return "";
  }

  void ReadField(const YAML::Node& node, const std::string& path, const FieldDescriptor& field, Message* message) {
    if (field.is_map()) {
      ReadLabels(node, path, field, message);
    } else if (field.is_repeated()) {
      ReadList(node, path, field, message);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !IsDuration(field)) {
      ReadMap(node, path, message->GetReflection()->MutableMessage(message, &field));
    } else {
      ReadScalar(node, path, field, message);
    }
  }

  void ReadList(const YAML::Node& node, const std::string& path, const FieldDescriptor& field, Message* message) {
    if (!node.IsSequence()) {
      AddProblem("WRONG_TYPE", path, absl::StrCat("must be a list, is ", Found(node)));
      return;
    }
    for (size_t i = 0; i < node.size(); ++i) {
      const std::string element = absl::StrCat(path, "[", i, "]");
      read_.lines.emplace(element, LineOf(node[i]));
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        ReadMap(node[i], element, message->GetReflection()->AddMessage(message, &field));
      } else {
        ReadScalar(node[i], element, field, message);
      }
    }
  }

  // map<string, string>.
  void ReadLabels(const YAML::Node& node, const std::string& path, const FieldDescriptor& field, Message* message) {
    if (!node.IsMap()) {
      AddProblem("WRONG_TYPE", path, absl::StrCat("must be a map of keys and texts, is ", Found(node)));
      return;
    }
    std::set<std::string> seen;
    for (const auto& pair : node) {
      const std::string key = pair.first.IsScalar() ? pair.first.Scalar() : "?";
      read_.lines[Join(path, key)] = LineOf(pair.first);
      if (!pair.first.IsScalar() || !pair.second.IsScalar()) {
        AddProblem("WRONG_TYPE", Join(path, key), absl::StrCat("must be text, is ", Found(pair.second)));
      } else if (!seen.insert(key).second) {
        AddProblem("DUPLICATE_KEY", Join(path, key), "is there twice", "keep one of the two");
      } else {
        Message* entry = message->GetReflection()->AddMessage(message, &field);
        const Descriptor& type = *entry->GetDescriptor();
        entry->GetReflection()->SetString(entry, type.map_key(), key);
        entry->GetReflection()->SetString(entry, type.map_value(), pair.second.Scalar());
      }
    }
  }

  void ReadScalar(const YAML::Node& node, const std::string& path, const FieldDescriptor& field, Message* message) {
    if (node.IsNull()) {
      AddProblem("WRONG_TYPE", path, "has no value", "give it one or leave the key out");
      return;
    }
    const FieldRule* rule = FindFieldRule(path);
    // Sizes, durations and `auto` may be quoted: JSON, which is YAML too, has no other way to write them.
    if (node.IsScalar() && rule != nullptr && rule->may_be_auto && node.Scalar() == "auto") return;
    const bool may_be_quoted =
        field.cpp_type() == FieldDescriptor::CPPTYPE_STRING || IsDuration(field) || FileKey(field) != field.name();
    const bool quoted = node.IsScalar() && node.Tag() == "!";
    if (!node.IsScalar() || (quoted && !may_be_quoted)) {
      AddProblem("WRONG_TYPE", path, absl::StrCat("must be ", Expected(field), ", is ", Found(node)));
      return;
    }
    const std::string text = node.Scalar();
    const absl::Status status = Set(text, quoted, field, rule, message);
    if (status.ok()) return;
    const bool out_of_range = status.code() == absl::StatusCode::kOutOfRange;
    AddProblem(out_of_range ? "OUT_OF_RANGE" : "WRONG_TYPE", path,
               out_of_range ? std::string(status.message())
                            : absl::StrCat("must be ", Expected(field), ": ", status.message()));
  }

  static std::string Expected(const FieldDescriptor& field) {
    if (IsDuration(field)) return "a duration such as 30m";
    if (FileKey(field) != field.name()) return "a size such as 40GiB";
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return "text";
      case FieldDescriptor::CPPTYPE_BOOL:
        return "true or false";
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return "a number";
      default:
        return "a whole number";
    }
  }

  // OUT_OF_RANGE when the value breaks its rule. Numbers are checked here, where an explicit 0 can still be seen.
  static absl::Status CheckedNumber(const FieldRule* rule, double value) {
    const std::string wrong = rule == nullptr ? "" : CheckNumber(*rule, value);
    return wrong.empty() ? absl::OkStatus() : absl::OutOfRangeError(wrong);
  }

  static absl::Status SetInteger(const absl::StatusOr<int64_t>& value, const FieldDescriptor& field,
                                 const FieldRule* rule, Message* message) {
    if (!value.ok()) return value.status();
    const absl::Status checked = CheckedNumber(rule, static_cast<double>(*value));
    if (!checked.ok()) return checked;
    const Reflection& reflection = *message->GetReflection();
    if (field.is_repeated()) {
      reflection.AddInt64(message, &field, *value);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      reflection.SetInt32(message, &field, static_cast<int32_t>(*value));
    } else {
      reflection.SetInt64(message, &field, *value);
    }
    return absl::OkStatus();
  }

  static absl::Status SetDuration(const std::string& text, const FieldDescriptor& field, const FieldRule* rule,
                                  Message* message) {
    const absl::StatusOr<absl::Duration> value = ParseDuration(text);
    if (!value.ok()) return value.status();
    const absl::Status checked = CheckedNumber(rule, absl::ToDoubleSeconds(*value));
    if (!checked.ok()) return checked;
    google::protobuf::Duration duration;
    duration.set_seconds(absl::ToInt64Seconds(*value));
    duration.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(*value - absl::Seconds(duration.seconds()))));
    message->GetReflection()->MutableMessage(message, &field)->CopyFrom(duration);
    return absl::OkStatus();
  }

  static absl::Status SetText(const std::string& text, bool quoted, const FieldDescriptor& field, Message* message) {
    if (!quoted && LooksLikeNoText(text)) {
      return absl::InvalidArgumentError(absl::StrCat("quote it: \"", text, "\""));
    }
    if (field.is_repeated()) {
      message->GetReflection()->AddString(message, &field, text);
    } else {
      message->GetReflection()->SetString(message, &field, text);
    }
    return absl::OkStatus();
  }

  static absl::Status Set(const std::string& text, bool quoted, const FieldDescriptor& field, const FieldRule* rule,
                          Message* message) {
    const Reflection& reflection = *message->GetReflection();
    if (IsDuration(field)) return SetDuration(text, field, rule, message);
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return SetText(text, quoted, field, message);
      case FieldDescriptor::CPPTYPE_BOOL: {
        const absl::StatusOr<bool> value = ParseFlag(text);
        if (value.ok()) reflection.SetBool(message, &field, *value);
        return value.status();
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        const absl::StatusOr<double> value = ParseNumber(text);
        if (!value.ok()) return value.status();
        reflection.SetDouble(message, &field, *value);
        return CheckedNumber(rule, *value);
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        const absl::StatusOr<uint64_t> value = ParseUnsigned(text);
        if (!value.ok()) return value.status();
        reflection.SetUInt64(message, &field, *value);
        return CheckedNumber(rule, static_cast<double>(*value));
      }
      default:
        return SetInteger(FileKey(field) == field.name() ? ParseInteger(text) : ParseSize(text), field, rule, message);
    }
  }

  YamlRead read_;
};

}  // namespace

YamlRead ReadYaml(absl::string_view text, Message* message) {
  Reader reader;
  // yaml-cpp tells of syntax errors by exceptions only; they end here.
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      reader.AddProblem("INVALID_YAML", "", "there are several documents in the file", "one job a file");
    } else if (documents.empty() || documents[0].IsNull()) {
      reader.AddProblem("INVALID_YAML", "", "there is nothing in the file");
    } else {
      reader.ReadMap(documents[0], "", message);
    }
    return reader.Take();
  } catch (const YAML::Exception& error) {
    Reader failed;
    failed.AddProblem("INVALID_YAML", "", absl::StrCat("this is not YAML: ", error.msg));
    YamlRead read = failed.Take();
    if (!error.mark.is_null()) read.lines[""] = error.mark.line + 1;
    return read;
  }
}

}  // namespace muster
