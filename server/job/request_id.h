// The ids by which clients make calls that add a job idempotent: the rules are the same for all of them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/job/job_entry.h"

namespace muster {

// INVALID_ARGUMENT naming the field when it is too long to be kept.
absl::Status CheckRequestId(const std::string& request_id);

// INVALID_ARGUMENT with reason REQUEST_ID_REUSED: the call of this id made `entry`, and was not the same call.
absl::Status RequestIdReusedError(const std::string& request_id, const JobEntry& entry);

}  // namespace muster
