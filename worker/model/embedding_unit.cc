#include "worker/model/embedding_unit.h"

#include "worker/kernels/kernels.h"
#include "worker/model/unit_binder.h"

namespace muster {
namespace {

class EmbeddingUnit : public ModelUnit {
 public:
  EmbeddingUnit(const UnitContext& context, const Unit& unit)
      : kernels_(context.kernels), shape_{.sequence_length = context.sequence_length, .vocab = context.shape.vocab} {
    const UnitBinder binder(context, unit);
    token_ = binder.BindWeight("token.weight");
    position_ = binder.BindWeight("position.weight");
  }

  absl::Status Forward(const MicroBatch& batch, const Tensor& /*input*/, const Tensor& output) override {
    kernels::EmbeddingForward(kernels_, shape_, batch.tokens, token_.value, position_.value, output);
    return absl::OkStatus();
  }

  absl::Status Backward(const MicroBatch& batch, const Tensor& /*input*/, const Tensor& gradient) override {
    kernels::EmbeddingBackward(kernels_, shape_, batch.tokens, gradient, token_.gradient, position_.gradient,
                               batch.accumulate);
    return absl::OkStatus();
  }

 private:
  KernelContext& kernels_;
  const kernels::EmbeddingShape shape_;
  Weight token_;     // (V, h)
  Weight position_;  // (context, h)
};

}  // namespace

std::unique_ptr<ModelUnit> MakeEmbeddingUnit(const UnitContext& context, const Unit& unit) {
  return std::make_unique<EmbeddingUnit>(context, unit);
}

}  // namespace muster
