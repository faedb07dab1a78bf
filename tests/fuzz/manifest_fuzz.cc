// A checkpoint's manifest, and the record of one rank's shard: whatever the text, parsing ends in an error or in a
// manifest that is written as the same text again and again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/formats/checkpoint_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  (void)muster::ParseShardRecord(text, "record").ok();
  const auto manifest = muster::ParseManifest(text, "manifest.json");
  if (!manifest.ok()) return 0;
  const std::string written = muster::SerializeManifest(*manifest);
  const auto again = muster::ParseManifest(written, "manifest.json");
  if (!again.ok() || muster::SerializeManifest(*again) != written) std::abort();
  return 0;
}
