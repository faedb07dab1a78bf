// The last unit: logits = norm(x) W^T, and the cross entropy of the targets. W is the token embedding where the head is
// tied. With tensor parallelism each rank has a run of the vocabulary, and the ranks exchange three numbers a row.
//
// Its backward follows its forward at once, so that it keeps what it computed whatever is recomputed elsewhere; only
// with chunks of rows are there never all logits, and backward computes each chunk's again.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "worker/kernels/kernels.h"
#include "worker/model/layers.h"
#include "worker/model/row_exchange.h"
#include "worker/model/unit.h"

namespace muster {

class HeadUnit : public ModelUnit {
 public:
  // REQUIRES: `unit` is the head.
  HeadUnit(const UnitContext& context, const Unit& unit);

  absl::Status Forward(const MicroBatch& batch, const Tensor& input, const Tensor& output) override;

  // Starts the residual stream's gradient: writes it rather than updates it.
  absl::Status Backward(const MicroBatch& batch, const Tensor& input, const Tensor& gradient) override;

  // Sum of cross entropies over the counted targets of the last Forward in this slot, nats; the same on every tensor
  // rank. Waits for the device.
  double LossSum(int64_t slot) const;

  // The cross entropies of the first positions of the last Forward in this slot, nats, 0 where ignored. Waits for the
  // device. REQUIRES: at most T.
  void CopyLosses(int64_t slot, absl::Span<float> losses) const;

  // The logits (V) of one position of the last Forward in this slot, before any Backward. Waits for the device.
  // REQUIRES: fp32 compute, all rows at once; a whole vocabulary on this rank.
  void CopyLogits(int64_t slot, int64_t row, absl::Span<float> logits) const;

 private:
  struct Saved {
    Norm::State norm;  // (T/t, h)
    Tensor logits;     // (rows of a chunk, V/t), their gradient once backward has begun
    Tensor losses;     // (T) f32
    Tensor lse;        // (T) f32
  };
  // A run of rows whose logits exist together.
  struct Rows {
    int64_t first = 0;
    int64_t count = 0;
  };
  bool chunked() const { return chunks_.size() > 1; }

  KernelContext& kernels_;
  TensorGroup* const group_;
  const int64_t vocab_;
  const RowExchange exchange_;
  kernels::ClassRange classes_;  // what the columns of logits stand for
  Norm norm_;
  Linear logits_;             // h -> V/t; a tied head has a gradient accumulator of its own
  std::vector<Rows> chunks_;  // all T rows
  std::vector<Saved> saved_;  // by slot
  Tensor statistics_;         // (T, kCrossEntropyStatistics) f32, of this rank's classes
  Tensor all_statistics_;     // (t T, kCrossEntropyStatistics) f32; the same tensor with one tensor rank
  Tensor d_norm_;             // (T/t, h): gradient of norm.out
  Tensor partials_;
};

}  // namespace muster
