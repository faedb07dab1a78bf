// Attention on a GPU, by the same walk over tiles as on the processor: every product is cuBLASLt's and every softmax a
// row kernel, one head after another on the stream. It is right and within the planned workspace; a fused kernel of the
// same contract is faster.
#include <initializer_list>

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

// Calls work(walk, i) for every i below count.
template <typename F>
void ForEachHead(KernelContext& context, const AttentionShape& shape, DType compute, const Tensor& workspace,
                 int64_t count, F work) {
  const auto run = [&](auto type) {
    using T = decltype(type);
    AttentionWalk<T, StreamExecutor> walk(StreamExecutor(context), shape, compute, workspace.as<float>());
    for (int64_t i = 0; i < count; ++i) work(walk, i);
  };
  if (compute == DType::kF32) run(float{});
  if (compute == DType::kBF16) run(BF16{});
  if (compute == DType::kF16) run(F16{});
}

}  // namespace

void AttentionForward(KernelContext& context, const AttentionShape& shape, const Tensor& qkv, const Tensor& out,
                      const Tensor& lse, const Tensor& workspace) {
  const ProfileRange range(context.device(), "attention");
  CheckAttention(shape, qkv, out, lse, workspace, 1);
  ForEachHead(context, shape, qkv.dtype, workspace, shape.batch * shape.heads, [&](auto& walk, int64_t i) {
    walk.Forward(i / shape.heads, i % shape.heads, qkv, out, lse.as<float>() + i * shape.sequence);
  });
}

void AttentionBackward(KernelContext& context, const AttentionShape& shape, const Tensor& d_out, const Tensor& qkv,
                       const Tensor& out, const Tensor& lse, const Tensor& d_qkv, const Tensor& workspace) {
  const ProfileRange range(context.device(), "attention");
  CheckAttention(shape, qkv, out, lse, workspace, 1);
  CheckAttention(shape, d_qkv, d_out, lse, workspace, 1);
  const int64_t group = shape.heads / shape.kv_heads;
  ForEachHead(context, shape, qkv.dtype, workspace, shape.batch * shape.kv_heads, [&](auto& walk, int64_t i) {
    walk.Backward(i / shape.kv_heads, i % shape.kv_heads, d_out, qkv, out, lse.as<float>() + i * group * shape.sequence,
                  d_qkv);
  });
}

}  // namespace muster::kernels
