// Passing an absl::Status up without three lines per call.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

// MUSTER_RETURN_IF_ERROR(Open(path));
#define MUSTER_RETURN_IF_ERROR(expression)                                  \
  do {                                                                      \
    if (::absl::Status muster_status = (expression); !muster_status.ok()) { \
      return muster_status;                                                 \
    }                                                                       \
  } while (false)

// MUSTER_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
#define MUSTER_ASSIGN_OR_RETURN(declaration, expression) \
  MUSTER_ASSIGN_OR_RETURN_INNER(MUSTER_CONCAT(muster_status_or_, __LINE__), declaration, expression)

#define MUSTER_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result.ok()) return std::move(result).status();                 \
  declaration = *std::move(result)
