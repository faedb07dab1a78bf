// What the bits of a result depend on beside the job: equal fingerprints give equal bits. Carried by every checkpoint
// and every start of a rank, so that a change is an event and not a mystery.
#pragma once

#include <map>
#include <string>

#include "worker/engine/engine_config.h"

namespace muster {

// Instruction set, library versions, threads, layout and precision. Left out is what changes nothing: the pipeline's
// cut, a sharded optimizer, recomputation.
std::map<std::string, std::string> Fingerprint(const EngineConfig& config);

}  // namespace muster
