// From YAML text to a message, by the message's descriptor and the table of field rules. job_file.h is what others use.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/plan/problem.h"
#include "google/protobuf/message.h"

namespace muster {

struct YamlRead {
  std::vector<Problem> problems;         // codes INVALID_YAML, UNKNOWN_KEY, DUPLICATE_KEY, WRONG_TYPE, OUT_OF_RANGE
  std::map<std::string, int> lines;      // field path -> line, from 1; "" is where parsing stopped
  std::vector<std::string> meant_paths;  // fields that an unknown key was probably meant to be
};

// Fills `message` with what the text sets. What could not be read is left out and is a problem.
YamlRead ReadYaml(absl::string_view text, google::protobuf::Message* message);

}  // namespace muster
