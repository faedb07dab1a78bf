#include "server/job/spec_admission.h"

#include <vector>

#include "common/rpc/grpc_status.h"
#include "common/spec/plan_proto.h"
#include "common/spec/resolve.h"
#include "common/spec/validate.h"

namespace muster {
namespace {

ResolvedJob Resolve(const v1::JobSpec& spec, const std::string& job_id) {
  ResolveOptions options;
  options.job_id = job_id;
  return ResolveSpec(spec, options);
}

}  // namespace

absl::StatusOr<AdmittedJob> SpecAdmission::Admit(const v1::JobSpec& spec, const std::string& job_id) const {
  const ResolvedJob resolved = Resolve(spec, job_id);
  if (!resolved.plan.problems.empty()) return BadRequestError(ToFieldViolations(resolved.plan.problems, "spec"));
  return AdmittedJob{resolved.spec, ToProto(resolved.plan)};
}

v1::Plan SpecAdmission::PlanOf(const v1::JobSpec& spec) const { return ToProto(Resolve(spec, "").plan); }

}  // namespace muster
