// What each field of a job may be: one table for the reader of job files, the check of messages, `muster explain` and
// the tests. A field named NAME_bytes in the schema is NAME in a job file and takes sizes there ("40GiB").
//
// Constant after start; any thread.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace muster {

struct NumberRange {
  double least = 0;
  double most = 0;
  bool above_least = false;  // `least` itself is out
  bool below_most = false;   // `most` itself is out

  // Never true of NaN.
  bool Contains(double value) const;
  std::string ToString() const;  // "from 1 to 100", "above 0 and below 1"
};

enum class TextKind {
  kFree,
  kName,  // letters, digits, '-', '_', '.', at most 63, beginning with a letter or digit
  kPath,  // relative, without ".."
};

struct FieldRule {
  const char* path = "";  // in the job file, without list indices: "data.train.weight"
  const char* unit = "";
  const char* default_text = "";  // "required" makes it so
  const char* meaning = "";
  NumberRange range = {};                  // of numbers
  std::vector<absl::string_view> choices;  // of texts that are one of a few
  std::vector<absl::string_view> later;    // those of them that this version refuses
  TextKind text = TextKind::kFree;
  bool may_be_auto = false;  // `auto` in the file, 0 in the message

  bool required() const { return absl::string_view(default_text) == "required"; }
};

// In the order of the job file.
const std::vector<FieldRule>& FieldRules();

// Null when no field has this path. Indices may be in it: "data.train[0].path".
const FieldRule* FindFieldRule(absl::string_view path);

// The field's key in a job file.
std::string FileKey(const google::protobuf::FieldDescriptor& field);

// The field whose key it is, or null.
const google::protobuf::FieldDescriptor* FieldOfKey(const google::protobuf::Descriptor& message, absl::string_view key);

// What is wrong with a value by its rule, or "".
std::string CheckNumber(const FieldRule& rule, double value);
std::string CheckText(const FieldRule& rule, absl::string_view value);
// Whether `value` is one of the choices that this version refuses.
bool IsLater(const FieldRule& rule, absl::string_view value);

// The candidate within two or three edits of `word`, or "".
std::string NearestWord(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace muster
