// Which instructions this host's CPU has, in the words of the inventory and of the numerics fingerprint.
#pragma once

#include <string>

namespace muster {

// "amx_bf16", "avx512_bf16", "avx512", "avx2" or "sse4.2": the widest that matrix products can use here. Any thread.
std::string InstructionSet();

}  // namespace muster
