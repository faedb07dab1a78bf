// A whole model on one rank of a tensor group, run forward and backward over one micro-batch by its units alone: what
// families, recomputation, chunks, masks and tensor parallelism are compared by.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/layout.h"
#include "common/plan/model_shape.h"
#include "worker/kernels/context.h"
#include "worker/model/head_unit.h"
#include "worker/model/stage_memory.h"
#include "worker/model/tensor_group.h"
#include "worker/model/unit.h"

namespace muster {

struct TestBatch {
  std::vector<int32_t> tokens;           // (micro_batch, sequence)
  std::vector<int32_t> targets;          // the same shape
  std::vector<int32_t> document_starts;  // the same shape, or empty
};

// Tokens in which every third target does not count.
TestBatch MakeTestBatch(const ModelShape& shape, const Layout& layout);

using Gradients = std::map<std::string, std::vector<float>>;  // whole logical tensors

struct ModelResult {
  double loss_sum = 0;
  Gradients gradients;  // of a tensor group: what this rank adds to their sum over the group
};

class ModelHarness {
 public:
  using MakeGroup = std::function<std::unique_ptr<TensorGroup>(KernelContext&, StageMemory&)>;

  // The rank of layout.tensor that `rank` is; `make_group` may be null with one. Weights are a function of the logical
  // tensor's name and element, whatever the cut.
  ModelHarness(const ModelShape& shape, const Layout& layout, int64_t rank = 0, const MakeGroup& make_group = nullptr);

  // Forward and backward of one micro-batch; gradients are written, not added to.
  absl::StatusOr<ModelResult> Run(const TestBatch& batch);

  const StageMemory& memory() const { return memory_; }

 private:
  UnitContext MakeContext();
  void FillWeights();
  Gradients CollectGradients();

  const ModelShape shape_;
  const Layout layout_;
  const int64_t rank_;
  const std::unique_ptr<Device> device_;
  StageMemory memory_;
  const std::unique_ptr<KernelContext> kernels_;
  const std::unique_ptr<TensorGroup> group_;
  const UnitContext context_;
  std::vector<std::unique_ptr<ModelUnit>> units_;
  HeadUnit* head_ = nullptr;
  std::vector<Tensor> stream_;  // by unit: its input
};

// ||a - b|| / ||b|| of each tensor, the largest of all. REQUIRES: the same tensors.
double LargestRelativeError(const Gradients& a, const Gradients& b);

}  // namespace muster
