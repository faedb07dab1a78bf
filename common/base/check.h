// A broken invariant ends the process with a message: it is a bug in Muster.
// Bad input, or the world misbehaving, is never a check; it is an absl::Status.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace muster::internal {

[[noreturn]] void CheckFailed(const char* file, int line, const char* expression, const std::string& message);

}  // namespace muster::internal

// MUSTER_CHECK(slot < slots) or MUSTER_CHECK(slot < slots, "slot ", slot, " of ", slots). Stays in Release builds.
#define MUSTER_CHECK(expression, ...) \
  (static_cast<bool>(expression)      \
       ? void(0)                      \
       : ::muster::internal::CheckFailed(__FILE__, __LINE__, #expression, ::absl::StrCat(__VA_ARGS__)))
