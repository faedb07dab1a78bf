// muster plan
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/plan_view.h"
#include "client/verbs.h"
#include "common/base/status_macros.h"
#include "common/spec/job_file.h"
#include "common/spec/plan_proto.h"
#include "common/spec/resolve.h"

namespace muster {

absl::StatusOr<ExitCode> RunVerb(Session& session, const PlanOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const JobFile file, ReadJobFile(options.file, options.data_root));
  const v1::Plan plan = ToProto(ResolveSpec(file.spec).plan);
  PrintResource(session.options(), plan,
                PlanText(file.spec.name(), plan, Palette(ColoursWanted(session.options().no_color))));
  return plan.feasible() ? ExitCode::kOk : ExitCode::kUsage;
}

}  // namespace muster
