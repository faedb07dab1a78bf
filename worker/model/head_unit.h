// The last unit: logits = norm(x) W^T, and the cross entropy of the targets. W is the token embedding where the head is
// tied.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "worker/model/layers.h"
#include "worker/model/unit.h"

namespace muster {

class HeadUnit : public ModelUnit {
 public:
  // REQUIRES: `unit` is the head.
  HeadUnit(const UnitContext& context, const Unit& unit);

  absl::Status Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) override;

  // Starts the residual stream's gradient: writes it rather than updates it.
  absl::Status Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) override;

  // Sum of cross entropies over the counted targets of the last Forward in this slot, nats. Waits for the device.
  double LossSum(int64_t slot) const;

  // The cross entropies of the first positions of the last Forward in this slot, nats, 0 where ignored. Waits for the
  // device. REQUIRES: at most T.
  void CopyLosses(int64_t slot, absl::Span<float> losses) const;

  // The logits (V) of one position of the last Forward in this slot, before any Backward. Waits for the device.
  // REQUIRES: fp32 compute; a whole vocabulary on this rank.
  void CopyLogits(int64_t slot, int64_t row, absl::Span<float> logits) const;

 private:
  struct Saved {
    Tensor mean, rstd;  // (T) f32
    Tensor norm_out;    // (T, h)
    Tensor logits;      // (T, V), their gradient once backward has begun
    Tensor losses;      // (T) f32
    Tensor lse;         // (T) f32
  };

  KernelContext& kernels_;
  LayerNorm norm_;
  Linear logits_;             // h -> V; a tied head has a gradient accumulator of its own
  std::vector<Saved> saved_;  // by slot
  Tensor d_hidden_;           // (T, h), gradient of norm_out
  Tensor partials_;
};

}  // namespace muster
