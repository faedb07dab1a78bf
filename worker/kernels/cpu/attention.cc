// Attention on the processor: heads are shared out over the threads, each product is a kept oneDNN primitive on one
// thread.
#include <cstdint>

#include "common/base/check.h"
#include "worker/kernels/checks.h"
#include "worker/kernels/cpu/attention_walk.h"
#include "worker/kernels/cpu/backend.h"
#include "worker/kernels/kernels.h"

namespace muster::kernels {
namespace {

// Aborts where a document starts after its row, or before that of the row before: the walk would leave out keys that
// are seen.
const int32_t* CheckedStarts(const AttentionShape& shape, const Tensor& starts) {
  const int32_t* const values = starts.as<int32_t>();
  if (values == nullptr) return nullptr;
  for (int64_t row = 0; row < shape.batch * shape.sequence; ++row) {
    const int64_t position = row % shape.sequence;
    const int32_t least = position == 0 ? 0 : values[row - 1];
    MUSTER_CHECK(values[row] >= least && values[row] <= position, "the document of row ", row, ", position ", position,
                 ", starts at ", values[row], ", that of the row before at ", least);
  }
  return values;
}

// Calls work(walk, i) for every i below count, on the context's threads.
template <typename F>
void ForEachHead(KernelContext& context, const AttentionShape& shape, const int32_t* starts, DType compute,
                 const Tensor& workspace, int64_t count, F work) {
  const auto run = [&](auto type) {
    using T = decltype(type);
    const int threads = context.threads();
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int thread = 0; thread < threads; ++thread) {
      float* const own = workspace.as<float>() + thread * (AttentionWorkspaceBytes(shape, 1) / SizeOf(DType::kF32));
      AttentionWalk<T> walk(ThreadExecutor(context.backend().row_table(), context.backend().matmul_of(thread)), shape,
                            starts, compute, own);
      for (int64_t i = count * thread / threads; i < count * (thread + 1) / threads; ++i) work(walk, i);
    }
  };
  if (compute == DType::kF32) run(float{});
  if (compute == DType::kBF16) run(BF16{});
  if (compute == DType::kF16) run(F16{});
}

}  // namespace

void AttentionForward(KernelContext& context, const AttentionShape& shape, const AttentionInput& input,
                      const Tensor& out, const Tensor& lse, const Tensor& workspace) {
  const ProfileRange range(context.device(), "attention");
  CheckAttention(shape, input, out, lse, workspace, context.threads());
  const int32_t* const starts = CheckedStarts(shape, input.document_starts);
  ForEachHead(context, shape, starts, input.qkv.dtype, workspace, shape.batch * shape.heads,
              [&](auto& walk, int64_t i) {
                walk.Forward(i / shape.heads, i % shape.heads, input.qkv, out, lse.as<float>() + i * shape.sequence);
              });
}

void AttentionBackward(KernelContext& context, const AttentionShape& shape, const Tensor& d_out,
                       const AttentionInput& input, const Tensor& out, const Tensor& lse, const Tensor& d_qkv,
                       const Tensor& workspace) {
  const ProfileRange range(context.device(), "attention");
  CheckAttention(shape, input, out, lse, workspace, context.threads());
  CheckAttention(shape, {d_qkv}, d_out, lse, workspace, context.threads());
  const int32_t* const starts = CheckedStarts(shape, input.document_starts);
  const int64_t group = shape.heads / shape.kv_heads;
  ForEachHead(context, shape, starts, input.qkv.dtype, workspace, shape.batch * shape.kv_heads,
              [&](auto& walk, int64_t i) {
                walk.Backward(i / shape.kv_heads, i % shape.kv_heads, d_out, input.qkv, out,
                              lse.as<float>() + i * group * shape.sequence, d_qkv);
              });
}

}  // namespace muster::kernels
