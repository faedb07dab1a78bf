// Page tokens: opaque to callers, the last number of the page inside, tied to the call that made them. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

std::string MakePageToken(absl::string_view call, int64_t last);

// 0 for an empty token. INVALID_ARGUMENT with reason INVALID_PAGE_TOKEN for anything that this call did not make.
absl::StatusOr<int64_t> ReadPageToken(absl::string_view call, const std::string& token);

// What the caller asked for within bounds: 0 becomes 100, more than 1000 becomes 1000. INVALID_ARGUMENT below 0.
absl::StatusOr<int64_t> PageSize(int32_t asked);

}  // namespace muster
