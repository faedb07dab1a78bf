#include "server/job/spec_admission.h"

#include "common/rpc/grpc_status.h"
#include "common/spec/plan_proto.h"
#include "common/spec/resolve.h"
#include "common/spec/validate.h"

namespace muster {
namespace {

ResolvedJob Resolve(const v1::JobSpec& spec, const std::string& job_id, const std::vector<SchedulableWorker>& workers) {
  v1::JobSpec complete = spec;
  FillDefaults(&complete);
  ResolveOptions options;
  options.job_id = job_id;
  options.device_memory_bytes = MemoryForEachRank(workers, complete.resources().device(), complete.resources().ranks());
  return ResolveSpec(spec, options);
}

}  // namespace

absl::StatusOr<AdmittedJob> SpecAdmission::Admit(const v1::JobSpec& spec, const std::string& job_id,
                                                 const std::vector<SchedulableWorker>& workers) const {
  const ResolvedJob resolved = Resolve(spec, job_id, workers);
  if (!resolved.plan.problems.empty()) return BadRequestError(ToFieldViolations(resolved.plan.problems, "spec"));
  return AdmittedJob{resolved.spec, ToProto(resolved.plan)};
}

v1::Plan SpecAdmission::PlanOf(const v1::JobSpec& spec, const std::vector<SchedulableWorker>& workers) const {
  return ToProto(Resolve(spec, "", workers).plan);
}

}  // namespace muster
