// Gathers texts of any length, which collectives of fixed size do not.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/comm/communicator.h"

namespace muster {

// Every rank's text, in rank order, on every rank.
absl::StatusOr<std::vector<std::string>> GatherStrings(Communicator& group, absl::string_view mine);

// The first error of any rank, in rank order, with that rank's number; OK when all ranks are. Every rank leaves with
// the same status.
absl::Status ShareStatus(Communicator& group, const absl::Status& mine);

}  // namespace muster
