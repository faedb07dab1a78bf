#include "server/job/admission.h"

namespace muster {

server::JobRecord RecordOf(const v1::JobSpec& spec, const AdmittedJob& admitted, const std::string& request_id) {
  server::JobRecord record;
  record.set_request_id(request_id);
  v1::Job* job = record.mutable_job();
  *job->mutable_spec() = spec;
  *job->mutable_resolved_spec() = admitted.resolved_spec;
  *job->mutable_plan() = admitted.plan;
  job->mutable_progress()->set_steps(admitted.resolved_spec.training().steps());
  return record;
}

}  // namespace muster
