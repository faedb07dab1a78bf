// CRC-32C (Castagnoli, polynomial 0x82F63B78 reflected; RFC 3720, appendix B.4), as TFRecord files have it. Our own
// files use crc32.h.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

// A table lookup a byte: some hundred MB/s. Any thread.
uint32_t Crc32c(absl::string_view bytes);

}  // namespace muster
