// The gate of SubmitJob: what a spec resolves to, and whether its plan fits.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/plan.pb.h"
#include "server/scheduler/scheduler.h"
#include "server/store/records.pb.h"

namespace muster {

struct AdmittedJob {
  v1::JobSpec resolved_spec;
  v1::Plan plan;
};

// The record of a new job with this spec, which was admitted.
server::JobRecord RecordOf(const v1::JobSpec& spec, const AdmittedJob& admitted, const std::string& request_id);

// Pure; called on the coordinator's loop.
class Admission {
 public:
  virtual ~Admission() = default;

  // INVALID_ARGUMENT with every field that is wrong, the memory that a rank lacks included. `job_id` is the default of
  // checkpoint.directory; empty when nothing is stored. A spec that does not say what a rank may use gets
  // what the devices of `workers` have.
  virtual absl::StatusOr<AdmittedJob> Admit(const v1::JobSpec& spec, const std::string& job_id,
                                            const std::vector<SchedulableWorker>& workers) const = 0;

  // The plan with its problems, whether it fits or not.
  virtual v1::Plan PlanOf(const v1::JobSpec& spec, const std::vector<SchedulableWorker>& workers) const = 0;
};

}  // namespace muster
