// Writes the weights of a checkpoint as a directory that Hugging Face's transformers loads: config.json,
// generation_config.json and model.safetensors. Free functions; one thread a directory.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/formats/checkpoint_reader.h"
#include "common/formats/safetensors.h"

namespace muster {

struct HuggingFaceExportOptions {
  // Of the weights there: F32 keeps every bit; BF16 and F16 halve the size and round to nearest even.
  StoredType type = StoredType::kF32;
  // The token that ends a document, as the configuration's bos and eos; -1: not known.
  int64_t end_of_document = -1;
  // Into a directory that has other files already: those of the same names are replaced, the rest stays.
  bool force = false;
  // Further files of the directory, by name: the tokenizer's, the self-check.
  std::map<std::string, std::string> files;
};

// Bytes of model.safetensors. The directory gets its name when all of it is on disk; with `force` into an existing one,
// each file does, config.json last. FAILED_PRECONDITION when it is there, is not empty and `force` is not set.
// DATA_LOSS and INVALID_ARGUMENT for a checkpoint that does not hold what its manifest says; OUT_OF_RANGE naming a
// tensor with a value beyond F16.
absl::StatusOr<int64_t> ExportHuggingFace(CheckpointReader& checkpoint, const std::string& directory,
                                          const HuggingFaceExportOptions& options);

}  // namespace muster
