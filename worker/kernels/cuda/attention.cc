// Attention on a GPU, by the same walk over tiles as on the processor: every product is cuBLASLt's and every softmax a
// row kernel, one head after another on the stream. It is right and within the planned workspace; a fused kernel of the
// same contract is faster.
#include <initializer_list>
#include <vector>

#include "worker/kernels/attention_walk.h"
#include "worker/kernels/checks.h"
#include "worker/kernels/cuda/backend.h"
#include "worker/kernels/kernels.h"
#include "worker/kernels/launch.h"

namespace muster::kernels {
namespace {

class StreamExecutor {
 public:
  explicit StreamExecutor(KernelContext& context) : context_(context) {}

  void Multiply(const MatMulArgs& args) const { context_.backend().matmul().Run(args); }

  template <typename Kernel>
  void Rows(const Kernel& kernel, int64_t rows, int64_t cols) const {
    Launch(context_, kernel, rows, cols);
  }

  // The kernels write zero where keys are hidden.
  template <typename Kernel, typename T>
  void TileRows(const Kernel& kernel, int64_t queries, int64_t keys, int64_t, std::initializer_list<T*>) const {
    Launch(context_, kernel, queries, keys);
  }

 private:
  KernelContext& context_;
};

// A copy of the documents' starts, by which the host leaves tiles out. It waits for the stream, which costs little
// beside the launches that each tile saves.
class HostStarts {
 public:
  HostStarts(KernelContext& context, const AttentionShape& shape, const Tensor& starts)
      : on_device_(starts.as<int32_t>()) {
    if (on_device_ == nullptr) return;
    on_host_.resize(static_cast<size_t>(starts.elements()));
    context.device().CopyToHost(on_host_.data(), on_device_, starts.bytes());
    CheckDocumentStarts(shape, starts, on_host_.data());
  }

  DocumentStarts starts() const {
    return on_device_ == nullptr ? DocumentStarts{} : DocumentStarts{on_device_, on_host_.data()};
  }

 private:
  const int32_t* const on_device_;
  std::vector<int32_t> on_host_;
};

// Calls work(walk, i) for every i below count.
template <typename F>
void ForEachHead(KernelContext& context, const AttentionShape& shape, const DocumentStarts& starts, DType compute,
                 const Tensor& workspace, int64_t count, F work) {
  const auto run = [&](auto type) {
    using T = decltype(type);
    AttentionWalk<T, StreamExecutor> walk(StreamExecutor(context), shape, starts, compute, workspace.as<float>());
    for (int64_t i = 0; i < count; ++i) work(walk, i);
  };
  if (compute == DType::kF32) run(float{});
  if (compute == DType::kBF16) run(BF16{});
  if (compute == DType::kF16) run(F16{});
}

}  // namespace

void AttentionForward(KernelContext& context, const AttentionShape& shape, const AttentionInput& input,
                      const Tensor& out, const Tensor& lse, const Tensor& workspace) {
  const ProfileRange range(context.device(), "attention");
  CheckAttention(shape, input.qkv, out, lse, workspace, 1);
  const HostStarts on_host(context, shape, input.document_starts);
  const DocumentStarts starts = on_host.starts();
  ForEachHead(context, shape, starts, input.qkv.dtype, workspace, shape.batch * shape.heads,
              [&](auto& walk, int64_t i) {
                walk.Forward(i / shape.heads, i % shape.heads, input.qkv, out, lse.as<float>() + i * shape.sequence);
              });
}

void AttentionBackward(KernelContext& context, const AttentionShape& shape, const Tensor& d_out,
                       const AttentionInput& input, const Tensor& out, const Tensor& lse, const Tensor& d_qkv,
                       const Tensor& workspace) {
  const ProfileRange range(context.device(), "attention");
  CheckAttention(shape, input.qkv, out, lse, workspace, 1);
  CheckAttention(shape, d_qkv, d_out, lse, workspace, 1);
  const HostStarts on_host(context, shape, input.document_starts);
  const DocumentStarts starts = on_host.starts();
  const int64_t group = shape.heads / shape.kv_heads;
  ForEachHead(context, shape, starts, input.qkv.dtype, workspace, shape.batch * shape.kv_heads,
              [&](auto& walk, int64_t i) {
                walk.Backward(i / shape.kv_heads, i % shape.kv_heads, d_out, input.qkv, out,
                              lse.as<float>() + i * group * shape.sequence, d_qkv);
              });
}

}  // namespace muster::kernels
