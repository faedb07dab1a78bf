#include "common/spec/job_file_writer.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/spec/field_rules.h"
#include "common/spec/scalars.h"
#include "google/protobuf/duration.pb.h"

namespace muster {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The fewest digits that read back as the same value.
std::string NumberText(double value) {
  for (int digits = 1; digits <= 17; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    if (std::strtod(text.c_str(), nullptr) == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

// Double-quoted YAML, which takes JSON's escapes.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", std::string(1, static_cast<char>(c)));
    } else if (c < 0x20) {
      absl::StrAppendFormat(&quoted, "\\x%02x", c);
    } else {
      quoted.push_back(static_cast<char>(c));
    }
  }
  return quoted + "\"";
}

std::string DurationText(const google::protobuf::Duration& duration) {
  return NumberText(static_cast<double>(duration.seconds()) + 1e-9 * duration.nanos()) + "s";
}

class Writer {
 public:
  std::string Take() { return std::move(text_); }

  void WriteMessage(const Message& message, const std::string& indent) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);  // those that are set, by number
    for (const FieldDescriptor* field : fields) WriteField(message, *field, indent);
  }

 private:
  void WriteField(const Message& message, const FieldDescriptor& field, const std::string& indent) {
    const auto& reflection = *message.GetReflection();
    const std::string key = absl::StrCat(indent, FileKey(field), ":");
    if (field.is_repeated()) {
      absl::StrAppend(&text_, key, "\n");
      for (int i = 0; i < reflection.FieldSize(message, &field); ++i) WriteElement(message, field, i, indent + "  ");
    } else if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      absl::StrAppend(&text_, key, " ", ScalarText(message, field), "\n");
    } else if (field.message_type() == google::protobuf::Duration::descriptor()) {
      const Message& duration = reflection.GetMessage(message, &field);
      absl::StrAppend(&text_, key, " ", DurationText(static_cast<const google::protobuf::Duration&>(duration)), "\n");
    } else {
      const Message& part = reflection.GetMessage(message, &field);
      std::vector<const FieldDescriptor*> set;
      part.GetReflection()->ListFields(part, &set);
      absl::StrAppend(&text_, key, set.empty() ? " {}\n" : "\n");
      WriteMessage(part, indent + "  ");
    }
  }

  void WriteElement(const Message& message, const FieldDescriptor& field, int index, const std::string& indent) {
    const auto& reflection = *message.GetReflection();
    if (field.is_map()) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, index);
      absl::StrAppend(&text_, indent, ScalarText(entry, *field.message_type()->map_key()), ": ",
                      ScalarText(entry, *field.message_type()->map_value()), "\n");
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      absl::StrAppend(&text_, indent, "-\n");
      WriteMessage(reflection.GetRepeatedMessage(message, &field, index), indent + "  ");
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      absl::StrAppend(&text_, indent, "- ", Quoted(reflection.GetRepeatedString(message, &field, index)), "\n");
    } else {
      absl::StrAppend(&text_, indent, "- ", reflection.GetRepeatedInt64(message, &field, index), "\n");
    }
  }

  static std::string ScalarText(const Message& message, const FieldDescriptor& field) {
    const auto& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = reflection.GetString(message, &field);
        const FieldRule name_rule{"", "", "", "", {}, {}, {}, TextKind::kName};
        const bool plain = CheckText(name_rule, text).empty() && !ParseNumber(text).ok() && text != "true" &&
                           text != "false" && text != "null" && text != "auto";
        return plain ? text : Quoted(text);
      }
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.GetBool(message, &field) ? "true" : "false";
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return NumberText(reflection.GetDouble(message, &field));
      case FieldDescriptor::CPPTYPE_UINT64:
        return absl::StrCat(reflection.GetUInt64(message, &field));
      case FieldDescriptor::CPPTYPE_INT32:
        return absl::StrCat(reflection.GetInt32(message, &field));
      default: {
        const int64_t value = reflection.GetInt64(message, &field);
        return FileKey(field) == field.name() ? absl::StrCat(value) : SizeText(value);
      }
    }
  }

  std::string text_;
};

}  // namespace

std::string WriteJobFile(const v1::JobSpec& spec) {
  Writer writer;
  writer.WriteMessage(spec, "");
  return writer.Take();
}

}  // namespace muster
