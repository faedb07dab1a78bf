// What is wrong with a job, said so that a person can mend it and a program can tell cases apart.
#pragma once

#include <string>

namespace muster {

struct Problem {
  std::string code;        // UPPER_SNAKE_CASE, stable: "LAYOUT_NOT_EQUAL_TO_RANKS"
  std::string field;       // path in the job file: "training.micro_batch"
  std::string message;     // one sentence, with the values in it
  std::string suggestion;  // what would work; several lines at the most, may be empty
};

}  // namespace muster
