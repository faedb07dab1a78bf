// Scalars as people write them, read strictly: in job files and in flags. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// All: INVALID_ARGUMENT whose message says what is wrong and quotes the text.

// Decimal, with a sign or none; no leading zeros, which other readers take for octal.
absl::StatusOr<int64_t> ParseInteger(absl::string_view text);
absl::StatusOr<uint64_t> ParseUnsigned(absl::string_view text);

// Decimal with an optional fraction and exponent: "6e-4". Never infinite or NaN.
absl::StatusOr<double> ParseNumber(absl::string_view text);

// "true" or "false".
absl::StatusOr<bool> ParseFlag(absl::string_view text);

// Bytes: a number and a unit of KiB, MiB, GiB, TiB (1024) or KB, MB, GB, TB (1000), or B, or none: "40GiB", "1.5 GB".
absl::StatusOr<int64_t> ParseSize(absl::string_view text);

// A number and s, m, h or d: "90s", "1.5h".
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// The shortest text that ParseSize reads as `bytes`.
std::string SizeText(int64_t bytes);

}  // namespace muster
