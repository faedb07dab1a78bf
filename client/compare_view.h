// Two runs side by side: what was asked differently, how they went at the same steps, and which is ahead. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/v1/job.pb.h"

namespace muster {

struct Run {
  v1::Job job;
  v1::QueryMetricsResponse metrics;
};

struct Comparison {
  struct Difference {
    std::string field;
    std::string left;
    std::string right;
  };
  // What both have at one step; NaN: it has no such value there.
  struct Step {
    int64_t step = 0;
    std::pair<double, double> loss;
    std::pair<double, double> validation_loss;
    std::pair<double, double> tokens_per_second;
    std::pair<double, double> resident_bytes;  // of the rank that has most
  };
  std::string left;  // "job-1 name"
  std::string right;
  std::vector<Difference> differences;  // of the resolved specs, names and folders left out
  std::vector<Step> steps;
  std::string verdict;
};

// At most `most_steps` of the steps that both have, evenly, the last among them.
Comparison Compare(const Run& left, const Run& right, size_t most_steps);

std::string CompareText(const Comparison& comparison);
std::string CompareJson(const Comparison& comparison);
std::string CompareYaml(const Comparison& comparison);

}  // namespace muster
