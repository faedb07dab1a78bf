// Admission by common/spec: the same checks, defaults and plan as the client's.
#pragma once

#include <string>

#include "server/job/admission.h"

namespace muster {

class SpecAdmission : public Admission {
 public:
  absl::StatusOr<AdmittedJob> Admit(const v1::JobSpec& spec, const std::string& job_id,
                                    const std::vector<SchedulableWorker>& workers) const override;
  v1::Plan PlanOf(const v1::JobSpec& spec, const std::vector<SchedulableWorker>& workers) const override;
};

}  // namespace muster
