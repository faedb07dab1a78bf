// Job files: YAML, read strictly into a JobSpec. An unknown or duplicate key, a wrong type, a value out of range or a
// missing field is an error with file, line and field path, and all of a file's errors are reported together.
//
// Free functions; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/plan/problem.h"
#include "muster/v1/job.pb.h"

namespace muster {

struct JobFile {
  std::string name;                  // as the user gave it, for messages
  v1::JobSpec spec;                  // as written: defaults are not filled in
  std::map<std::string, int> lines;  // field path -> line, from 1
  std::vector<Problem> problems;     // what is wrong with the spec (validate.h)

  // "FILE:LINE: field.path: message", and the suggestion indented below. The line is that of the nearest enclosing
  // field that the file has. Problems in the order of their lines.
  std::string Describe(const std::vector<Problem>& problems) const;
};

// Reads and validates. A file that can be read as a spec is returned with what is wrong with that spec, for the caller
// to refuse or to show. INVALID_ARGUMENT when it cannot be (no such file, no YAML, an unknown key, a wrong type), whose
// message is Describe() of everything that is wrong.
//
// What the file leaves out of a model with init_from is taken from the model's config.json, where it can be read below
// `data_root` (initial_model.h).
absl::StatusOr<JobFile> ReadJobFile(const std::string& path, const std::string& data_root = ".");
absl::StatusOr<JobFile> ParseJobFile(const std::string& name, absl::string_view text,
                                     const std::string& data_root = ".");

}  // namespace muster
