// A model that only runs forward: the units of training over an arena that holds nothing but parameters and one
// sequence's activations.
//
// Owned by whoever generates; one thread. The whole sequence is computed again for every token: there is no second copy
// of a layer that would go a token at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/generate/model_source.h"

namespace muster {

struct ForwardOptions {
  int64_t window = 0;   // tokens of one sequence, at most the model's context; memory and time grow with it
  int64_t threads = 1;  // of matrix products
};

class ForwardModel {
 public:
  // Allocates the arena and reads the weights, fp32. INVALID_ARGUMENT for a shape that cannot be; RESOURCE_EXHAUSTED
  // when the arena cannot be had; else the source's errors.
  static absl::StatusOr<std::unique_ptr<ForwardModel>> Create(const ModelSource& source, const ForwardOptions& options);

  virtual ~ForwardModel() = default;

  virtual const ModelShape& shape() const = 0;
  virtual int64_t window() const = 0;

  // Runs the tokens, 1 to `window` of them. INVALID_ARGUMENT for a token outside the vocabulary.
  virtual absl::Status Forward(absl::Span<const int32_t> tokens) = 0;

  // Of the position that the last Forward had there: the logits (vocabulary) of the token behind it.
  virtual void CopyLogits(int64_t position, absl::Span<float> logits) const = 0;
};

}  // namespace muster
