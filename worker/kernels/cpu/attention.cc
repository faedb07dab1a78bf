// Attention on the processor: heads are shared out over the threads, each product is a kept oneDNN primitive on one
// thread.
#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "worker/kernels/attention_walk.h"
#include "worker/kernels/checks.h"
#include "worker/kernels/cpu/backend.h"
#include "worker/kernels/kernels.h"

namespace muster::kernels {
namespace {

// One thread's products and row kernels (attention_walk.h).
class ThreadExecutor {
 public:
  ThreadExecutor(const RowTable& rows, OneDnnMatMul& matmul) : rows_(rows), matmul_(matmul) {}

  void Multiply(const MatMulArgs& args) const { matmul_.Run(args); }

  template <typename Kernel>
  void Rows(const Kernel& kernel, int64_t rows, int64_t cols) const {
    RunRows(rows_, kernel, RowBox{0, rows, cols, 0, cols});
  }

  template <typename Kernel, typename T>
  void TileRows(const Kernel& kernel, int64_t queries, int64_t keys, int64_t diagonal,
                std::initializer_list<T*> results) const {
    constexpr int64_t kBand = 32;  // rows; a quarter of a tile, of whole SIMD registers
    for (int64_t row = 0; row < queries; row += kBand) {
      const int64_t end = std::min(queries, row + kBand);
      const int64_t visible = std::min(keys, diagonal + row + kBand);
      RunRows(rows_, kernel, RowBox{row, end, visible, 0, visible});
      if (visible == keys) continue;
      for (T* const result : results) {
        for (int64_t r = row; r < end; ++r) {
          std::memset(static_cast<void*>(result + r * kAttentionTile + visible), 0,
                      static_cast<size_t>(keys - visible) * sizeof(T));
        }
      }
    }
  }

 private:
  const RowTable& rows_;
  OneDnnMatMul& matmul_;
};

DocumentStarts StartsOf(const AttentionShape& shape, const Tensor& starts) {
  if (starts.data == nullptr) return {};
  CheckDocumentStarts(shape, starts, starts.as<int32_t>());
  return {starts.as<int32_t>(), starts.as<int32_t>()};
}

// Calls work(walk, i) for every i below count, on the context's threads.
template <typename F>
void ForEachHead(KernelContext& context, const AttentionShape& shape, const DocumentStarts& starts, DType compute,
                 const Tensor& workspace, int64_t count, F work) {
  const auto run = [&](auto type) {
    using T = decltype(type);
    const int threads = context.threads();
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int thread = 0; thread < threads; ++thread) {
      float* const own = workspace.as<float>() + thread * (AttentionWorkspaceBytes(shape, 1) / SizeOf(DType::kF32));
      AttentionWalk<T, ThreadExecutor> walk(
          ThreadExecutor(context.backend().row_table(), context.backend().matmul_of(thread)), shape, starts, compute,
          own);
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
  CheckAttention(shape, input.qkv, out, lse, workspace, context.threads());
  const DocumentStarts starts = StartsOf(shape, input.document_starts);
  ForEachHead(context, shape, starts, input.qkv.dtype, workspace, shape.batch * shape.heads,
              [&](auto& walk, int64_t i) {
                walk.Forward(i / shape.heads, i % shape.heads, input.qkv, out, lse.as<float>() + i * shape.sequence);
              });
}

void AttentionBackward(KernelContext& context, const AttentionShape& shape, const Tensor& d_out,
                       const AttentionInput& input, const Tensor& out, const Tensor& lse, const Tensor& d_qkv,
                       const Tensor& workspace) {
  const ProfileRange range(context.device(), "attention");
  CheckAttention(shape, input.qkv, out, lse, workspace, context.threads());
  CheckAttention(shape, d_qkv, d_out, lse, workspace, context.threads());
  const DocumentStarts starts = StartsOf(shape, input.document_starts);
  const int64_t group = shape.heads / shape.kv_heads;
  ForEachHead(context, shape, starts, input.qkv.dtype, workspace, shape.batch * shape.kv_heads,
              [&](auto& walk, int64_t i) {
                walk.Backward(i / shape.kv_heads, i % shape.kv_heads, d_out, input.qkv, out,
                              lse.as<float>() + i * group * shape.sequence, d_qkv);
              });
}

}  // namespace muster::kernels
