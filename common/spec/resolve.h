// From what a user asks to what every attempt runs: defaults and every `auto` filled once, with the plan of the result.
// Pure functions; equal inputs resolve equally on every machine.
#pragma once

#include <cstdint>
#include <string>

#include "common/plan/job_plan.h"
#include "muster/v1/job.pb.h"

namespace muster {

struct ResolveOptions {
  int64_t device_memory_bytes = 0;  // what a rank may take where the spec does not say; 0: not known
  std::string job_id;               // the default of checkpoint.directory; empty: left empty
};

struct ResolvedJob {
  v1::JobSpec spec;  // complete when the plan is feasible: resolving it again changes nothing
  JobPlan plan;      // plan.problems has everything that is wrong, the spec's own errors included
};

ResolvedJob ResolveSpec(const v1::JobSpec& spec, const ResolveOptions& options = {});

// Fills every field that has a constant default or one that follows from other fields of the spec, in place.
void FillDefaults(v1::JobSpec* spec);

}  // namespace muster
