#include "common/spec/resolve.h"

#include <utility>

#include "common/spec/plan_proto.h"
#include "common/spec/validate.h"

namespace muster {

ResolvedJob ResolveSpec(const v1::JobSpec& spec, const ResolveOptions& options) {
  ResolvedJob resolved;
  resolved.spec = spec;
  std::vector<Problem> problems = ValidateSpec(spec);
  FillDefaults(&resolved.spec);
  v1::ResourcesSpec* resources = resolved.spec.mutable_resources();
  if (resources->memory_per_rank_bytes() == 0) resources->set_memory_per_rank_bytes(options.device_memory_bytes);
  if (resolved.spec.checkpoint().directory().empty()) resolved.spec.mutable_checkpoint()->set_directory(options.job_id);
  if (!problems.empty()) {
    resolved.plan.problems = std::move(problems);
    return resolved;
  }

  resolved.plan = BuildJobPlan(ToPlanRequest(resolved.spec, &problems));
  const Layout& layout = resolved.plan.layout;
  resolved.spec.mutable_parallelism()->set_data(layout.data);
  resolved.spec.mutable_training()->set_micro_batch(layout.micro_batch);
  resolved.spec.mutable_parallelism()->clear_cuts();
  for (size_t stage = 1; stage < resolved.plan.stages.size(); ++stage) {
    resolved.spec.mutable_parallelism()->add_cuts(resolved.plan.stages[stage].units.first);
  }
  return resolved;
}

}  // namespace muster
