// Between float and the floating-point types that files store: F32, BF16, F16. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/formats/safetensors.h"

namespace muster {

bool IsStoredFloat(StoredType type);

// values[i] = element first + i x stride of `data`, widened exactly. REQUIRES: IsStoredFloat(type); they lie in `data`.
void LoadFloats(StoredType type, absl::Span<const std::byte> data, int64_t first, int64_t stride,
                absl::Span<float> values);

// Rounds to nearest even into `data`, dense. False when a finite value is beyond the type's range (F16: 65504); what
// was written then does not count. REQUIRES: IsStoredFloat(type); data has exactly their bytes.
bool StoreFloats(StoredType type, absl::Span<const float> values, absl::Span<std::byte> data);

}  // namespace muster
