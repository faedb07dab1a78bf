// A JobSpec as a job file. Pure function.
#pragma once

#include <string>

#include "muster/v1/job.pb.h"

namespace muster {

// YAML that job_file.h reads back into the same spec: what is set, in the order of the schema, sizes as "40GiB",
// numbers with every digit that matters.
std::string WriteJobFile(const v1::JobSpec& spec);

}  // namespace muster
