// The check of a JobSpec, from wherever it came: ranges, required fields, what this version does not do, the data, and
// the layout (common/plan/layout_check.h). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/plan/problem.h"
#include "google/rpc/error_details.pb.h"
#include "muster/v1/job.pb.h"

namespace muster {

// Everything that is wrong, at most one problem a field, in the order of the fields. The layout is checked once every
// field is right by itself. Codes: MISSING_FIELD, OUT_OF_RANGE, NOT_SUPPORTED_YET and those of CheckLayout.
std::vector<Problem> ValidateSpec(const v1::JobSpec& spec);

// For BadRequest: `root` is where the spec is in the request, "spec". Paths are the schema's there
// ("spec.resources.memory_per_rank_bytes"), descriptions hold message and suggestion.
std::vector<google::rpc::BadRequest::FieldViolation> ToFieldViolations(const std::vector<Problem>& problems,
                                                                       absl::string_view root);

}  // namespace muster
