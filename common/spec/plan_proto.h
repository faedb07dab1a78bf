// Between the messages of muster.v1 and the plain structs of common/plan. Pure functions.
#pragma once

#include <vector>

#include "common/plan/job_plan.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/plan.pb.h"

namespace muster {

// What BuildJobPlan needs. REQUIRES: defaults are filled (resolve.h) and texts are among their choices. Cuts that do
// not fit are appended to `problems` and left out.
JobPlanRequest ToPlanRequest(const v1::JobSpec& spec, std::vector<Problem>* problems);

// What a rank builds itself from, beside the training fields of the resolved spec, which are all filled in.
struct EngineInputs {
  ModelShape model;
  Layout layout;
  std::vector<UnitRange> stages;
};
// REQUIRES: a spec that ResolveSpec made, with a feasible plan.
EngineInputs ToEngineInputs(const v1::JobSpec& resolved);

v1::Plan ToProto(const JobPlan& plan);

}  // namespace muster
