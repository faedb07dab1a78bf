#include "common/spec/job_file.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "common/spec/initial_model.h"
#include "common/spec/validate.h"
#include "common/spec/yaml_reader.h"

namespace muster {
namespace {

constexpr int64_t kLargestJobFileBytes = 1 << 20;

// The field that holds this one: "data.train[0].path" -> "data.train[0]" -> "data.train" -> "data" -> "".
std::string Enclosing(const std::string& path) {
  const size_t end = path.find_last_of(".[");
  return end == std::string::npos ? "" : path.substr(0, end);
}

// 0 when neither the field nor one around it is in the file.
int LineOf(const std::map<std::string, int>& lines, std::string path) {
  while (true) {
    const auto found = lines.find(path);
    if (found != lines.end()) return found->second;
    if (path.empty()) return 0;
    path = Enclosing(path);
  }
}

bool HasField(const std::vector<Problem>& problems, const std::string& field) {
  return std::any_of(problems.begin(), problems.end(),
                     [&field](const Problem& problem) { return problem.field == field; });
}

}  // namespace

std::string JobFile::Describe(const std::vector<Problem>& problems) const {
  std::vector<std::pair<int, const Problem*>> ordered;
  for (const Problem& problem : problems) ordered.emplace_back(LineOf(lines, problem.field), &problem);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (const auto& entry : ordered) {
    const Problem& problem = *entry.second;
    if (!text.empty()) absl::StrAppend(&text, "\n");
    absl::StrAppend(&text, name, ":", entry.first > 0 ? absl::StrCat(entry.first, ": ") : " ");
    if (!problem.field.empty()) absl::StrAppend(&text, problem.field, ": ");
    absl::StrAppend(&text, problem.message);
    if (!problem.suggestion.empty()) {
      absl::StrAppend(&text, "\n  ", absl::StrReplaceAll(problem.suggestion, {{"\n", "\n  "}}));
    }
  }
  return text;
}

absl::StatusOr<JobFile> ParseJobFile(const std::string& name, absl::string_view text, const std::string& data_root) {
  JobFile file;
  file.name = name;
  YamlRead read = ReadYaml(text, &file.spec);
  file.lines = std::move(read.lines);
  std::vector<Problem> problems = std::move(read.problems);
  const bool structure_is_good = problems.empty();
  std::vector<Problem> model_problems;
  if (structure_is_good) FillFromInitialModel(data_root, file.spec.mutable_model(), &model_problems);
  if (structure_is_good || !HasField(problems, "")) {
    // What is missing for want of the initial model is said once.
    const bool shape_is_known = model_problems.empty();
    for (Problem& problem : model_problems) problems.push_back(std::move(problem));
    for (Problem& problem : ValidateSpec(file.spec)) {
      if (!shape_is_known && absl::StartsWith(problem.field, "model.")) continue;
      // What could not be read, or went by a wrong key, is not missing as well.
      const bool known =
          HasField(problems, problem.field) ||
          std::find(read.meant_paths.begin(), read.meant_paths.end(), problem.field) != read.meant_paths.end();
      const bool about_fields =
          problem.code == "MISSING_FIELD" || problem.code == "OUT_OF_RANGE" || problem.code == "NOT_SUPPORTED_YET";
      if (!known && (structure_is_good || about_fields)) problems.push_back(std::move(problem));
    }
  }
  if (!structure_is_good) return absl::InvalidArgumentError(file.Describe(problems));
  file.problems = std::move(problems);
  return file;
}

absl::StatusOr<JobFile> ReadJobFile(const std::string& path, const std::string& data_root) {
  const absl::StatusOr<std::string> text = ReadFile(path, kLargestJobFileBytes);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  return ParseJobFile(path, *text, data_root);
}

}  // namespace muster
