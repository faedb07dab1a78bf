// The characters that stand for bytes in the files of byte-level BPE tokenizers: GPT-2's encoder.py writes every byte
// as one printable character, so that a vocabulary is readable JSON. Bytes 33 to 126, 161 to 172 and 174 to 255 are the
// characters of their own code, the other 68 in ascending order are U+0100, U+0101, ...
//
// Pure functions; any thread.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// UTF-8 of the character for each byte.
const std::array<std::string, 256>& ByteAlphabet();

// The bytes that a word of the alphabet stands for; nothing when it has a character that is not in the alphabet.
std::optional<std::string> BytesOfWord(absl::string_view word);

}  // namespace muster
