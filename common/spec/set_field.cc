#include "common/spec/set_field.h"

#include <google/protobuf/util/field_mask_util.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/spec/field_rules.h"
#include "common/spec/yaml_reader.h"

namespace muster {
namespace {

// The names of a path's fields in the schema. Empty when there is no such field.
std::vector<std::string> SchemaNames(const std::vector<std::string>& keys) {
  std::vector<std::string> names;
  const google::protobuf::Descriptor* message = v1::JobSpec::descriptor();
  for (const std::string& key : keys) {
    const google::protobuf::FieldDescriptor* field = message == nullptr ? nullptr : FieldOfKey(*message, key);
    if (field == nullptr) return {};
    names.push_back(field->name());
    message = field->is_repeated() ? nullptr : field->message_type();
  }
  return names;
}

}  // namespace

absl::StatusOr<std::string> SetField(absl::string_view assignment, v1::JobSpec* spec) {
  const std::vector<std::string> sides = absl::StrSplit(assignment, absl::MaxSplits('=', 1));
  if (sides.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", assignment, "\" is not FIELD=VALUE, as training.steps=100 is"));
  }
  const std::vector<std::string> keys = absl::StrSplit(sides[0], '.');
  const std::vector<std::string> names = SchemaNames(keys);
  if (names.empty()) {
    std::vector<std::string> known;
    for (const FieldRule& rule : FieldRules()) known.push_back(rule.path);
    const std::string near = NearestWord(sides[0], known);
    return absl::InvalidArgumentError(absl::StrCat("a job has no field \"", sides[0], "\"",
                                                   near.empty() ? "" : absl::StrCat("; did you mean ", near, "?")));
  }
  // {a: {b: VALUE}}
  const std::string yaml = absl::StrCat("{", absl::StrJoin(keys, ": {"), ": ", sides[1], std::string(keys.size(), '}'));
  v1::JobSpec part;
  const YamlRead read = ReadYaml(yaml, &part);
  if (!read.problems.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(sides[0], ": ", read.problems.front().message));
  }
  google::protobuf::FieldMask mask;
  mask.add_paths(absl::StrJoin(names, "."));
  google::protobuf::util::FieldMaskUtil::MergeOptions options;
  options.set_replace_message_fields(true);
  options.set_replace_repeated_fields(true);
  google::protobuf::util::FieldMaskUtil::MergeMessageTo(part, mask, options, spec);
  return mask.paths(0);
}

}  // namespace muster
