#include "worker/model/embedding_unit.h"

#include "common/base/status_macros.h"
#include "common/plan/parameter_shard.h"
#include "worker/kernels/kernels.h"
#include "worker/model/layers.h"
#include "worker/model/row_exchange.h"
#include "worker/model/unit_binder.h"

namespace muster {
namespace {

class EmbeddingUnit : public ModelUnit {
 public:
  EmbeddingUnit(const UnitContext& context, const Unit& unit)
      : kernels_(context.kernels),
        shape_{.sequence_length = context.sequence_length,
               .vocab = context.shape.vocab,
               .first_token = context.tensor_rank() * VocabRowsPerTensorRank(context.shape, context.tensor_size())},
        adds_positions_(context.tensor_rank() == 0),
        exchange_(context) {
    const UnitBinder binder(context, unit);
    token_ = binder.BindWeight("token.weight");
    if (!context.shape.rotary()) position_ = binder.BindWeight("position.weight");
  }

  absl::Status Forward(const MicroBatch& batch, const Tensor& /*input*/, const Tensor& output) override {
    const Tensor partial = exchange_.PartialFor(output);
    kernels::EmbeddingForward(kernels_, shape_, batch.tokens, token_.value,
                              adds_positions_ ? position_.value : Tensor(), partial);
    return exchange_.Reduce(partial, output);
  }

  // Every rank of the group sees all rows, so that each has the whole gradient of the positions.
  absl::Status Backward(const MicroBatch& batch, const Tensor& /*input*/, const Tensor& gradient) override {
    if (!token_.trained() && !position_.trained()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const Tensor d_out, exchange_.Gather(gradient));
    kernels::EmbeddingBackward(kernels_, shape_, batch.tokens, d_out, token_.gradient, position_.gradient,
                               batch.accumulate);
    return absl::OkStatus();
  }

 private:
  KernelContext& kernels_;
  const kernels::EmbeddingShape shape_;
  const bool adds_positions_;  // the ranks' parts are summed: one of them has the positions
  const RowExchange exchange_;
  Weight token_;     // (V/t, h)
  Weight position_;  // (context, h); empty where positions are rotary
};

}  // namespace

std::unique_ptr<ModelUnit> MakeEmbeddingUnit(const UnitContext& context, const Unit& unit) {
  return std::make_unique<EmbeddingUnit>(context, unit);
}

}  // namespace muster
