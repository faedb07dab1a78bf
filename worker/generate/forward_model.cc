#include "worker/generate/forward_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/plan/forward_ledger.h"
#include "common/plan/layout_check.h"
#include "worker/engine/chunk.h"
#include "worker/engine/trace_recorder.h"
#include "worker/kernels/context.h"
#include "worker/kernels/kernels.h"
#include "worker/model/stage_memory.h"
#include "worker/tensor/device.h"

namespace muster {
namespace {

constexpr int64_t kPieceElements = int64_t{1} << 18;  // 1 MiB on the host while weights are read

class StageModel : public ForwardModel {
 public:
  StageModel(const ModelShape& shape, const ForwardOptions& options, std::unique_ptr<Device> device, StageMemory memory,
             std::unique_ptr<KernelContext> kernels)
      : shape_(shape),
        window_(options.window),
        device_(std::move(device)),
        memory_(std::move(memory)),
        kernels_(std::move(kernels)),
        context_{.kernels = *kernels_,
                 .memory = memory_,
                 .shape = shape_,
                 .micro_batch = 1,
                 .sequence_length = window_,
                 .slots = 1,
                 .compute = DType::kF32},
        clock_(MakeSystemClock()),
        recorder_(*clock_, *device_),
        chunk_(context_, /*index=*/0, {0, shape_.units()}, recorder_),
        batch_(memory_.BindBytes("staging/validation")) {}

  absl::Status ReadWeights(const ModelSource& source);

  const ModelShape& shape() const override { return shape_; }
  int64_t window() const override { return window_; }
  absl::Status Forward(absl::Span<const int32_t> tokens) override;
  void CopyLogits(int64_t position, absl::Span<float> logits) const override {
    chunk_.CopyLogits(/*slot=*/0, position, logits);
  }

 private:
  const ModelShape shape_;
  const int64_t window_;
  const std::unique_ptr<Device> device_;
  StageMemory memory_;
  const std::unique_ptr<KernelContext> kernels_;
  const UnitContext context_;
  const std::unique_ptr<Clock> clock_;
  TraceRecorder recorder_;  // records nothing
  Chunk chunk_;
  const Tensor batch_;  // tokens (window) i32, then targets
};

absl::Status StageModel::ReadWeights(const ModelSource& source) {
  std::vector<float> piece;
  for (const ParameterInfo& parameter : Parameters(shape_)) {
    const Tensor value = memory_.Bind(absl::StrCat("parameter/", parameter.name), DType::kF32, parameter.dims);
    const int64_t columns = parameter.elements() / parameter.dims[0];
    const int64_t rows_at_once = std::max<int64_t>(1, kPieceElements / columns);
    for (int64_t row = 0; row < parameter.dims[0]; row += rows_at_once) {
      piece.resize(static_cast<size_t>(std::min(rows_at_once, parameter.dims[0] - row) * columns));
      MUSTER_RETURN_IF_ERROR(source.read(parameter, row, absl::MakeSpan(piece)));
      device_->CopyToDevice(value.as<float>() + row * columns, piece.data(),
                            static_cast<int64_t>(piece.size() * sizeof(float)));
      MUSTER_RETURN_IF_ERROR(device_->Synchronize());  // the next piece overwrites this one
    }
  }
  return absl::OkStatus();
}

absl::Status StageModel::Forward(absl::Span<const int32_t> tokens) {
  MUSTER_CHECK(!tokens.empty() && static_cast<int64_t>(tokens.size()) <= window_, tokens.size(),
               " tokens in a window of ", window_);
  // Behind the last token stands anything: attention is causal. No target counts, so no loss is computed.
  std::vector<int32_t> batch(static_cast<size_t>(2 * window_), 0);
  std::fill(batch.begin() + window_, batch.end(), kernels::kIgnoredTarget);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= shape_.vocab) {
      return absl::InvalidArgumentError(absl::StrCat("token ", tokens[i], " at position ", i,
                                                     " is not in the model's vocabulary of ", shape_.vocab,
                                                     "; is this the tokenizer of the model's data?"));
    }
    batch[i] = tokens[i];
  }
  device_->CopyToDevice(batch_.data, batch.data(), static_cast<int64_t>(batch.size() * sizeof(int32_t)));
  MicroBatch micro_batch;
  micro_batch.tokens = Tensor(batch_.data, DType::kI32, {window_});
  micro_batch.targets = Tensor(batch_.as<int32_t>() + window_, DType::kI32, {window_});
  MUSTER_RETURN_IF_ERROR(chunk_.Forward(micro_batch));
  return device_->Synchronize();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ForwardModel>> ForwardModel::Create(const ModelSource& source,
                                                                   const ForwardOptions& options) {
  Layout layout;
  layout.sequence_length = options.window;
  layout.threads_per_rank = options.threads;
  const std::vector<Problem> problems =
      CheckLayout({.shape = source.shape, .layout = layout, .ranks = 1, .global_batch = 1});
  if (!problems.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.directory, ": ", problems[0].field, ": ", problems[0].message));
  }
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenDevice(/*ordinal=*/0));
  MUSTER_ASSIGN_OR_RETURN(StageMemory memory, StageMemory::Allocate(*device, BuildForwardLedger(source.shape, layout)));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<KernelContext> kernels,
                          KernelContext::Create(*device, {.threads = static_cast<int>(options.threads)},
                                                memory.BindBytes("workspace/kernels")));
  auto model =
      std::make_unique<StageModel>(source.shape, options, std::move(device), std::move(memory), std::move(kernels));
  MUSTER_RETURN_IF_ERROR(model->ReadWeights(source));
  return std::unique_ptr<ForwardModel>(std::move(model));
}

}  // namespace muster
