// Every operation of the engine, one declaration each; the back-end that is linked (cpu/ or cuda/) defines them.
//
// What holds everywhere, said once:
//  - Shapes are in the comments. T = micro-batch x sequence rows; h = hidden; f = ffn; V = vocabulary. "compute" is
//    bf16, f16 or f32, the same for all tensors so marked in one call; gradients of parameters and statistics are f32.
//  - Arithmetic and sums are in f32 whatever the storage type.
//  - Gradients of parameters are written with `=` when accumulate is false (first micro-batch), `+=` when it is true.
//  - The order of every sum depends on shapes and on threads-per-rank only, never on the device's size or on timing.
//  - Operations are enqueued on the context's stream (the CPU runs them at once) and read tensors when they run.
//  - Each operation is a range of the device's profile, named in lower case.
//  - Memory comes from the caller: nothing here allocates beyond small cached objects.
//  - Callers' shapes are checked with aborts: a wrong shape is a bug, not an input.
//
// Plain C++17; CUDA sources include this file.
#pragma once

#include <cstdint>

#include "common/plan/device_constants.h"
#include "worker/tensor/view.h"

namespace muster {

class KernelContext;  // device, stream, thread count, matmul primitives and workspace: worker/kernels/context.h

namespace kernels {

// ---- matmul -------------------------------------------------------------------------------------------------------

// out (M, N) [+]= a (M, K) x b (K, N), each two-dimensional with any row stride; `transpose_*` means the memory holds
// the transpose. a and b have one type; out has that type or f32. With `bias` (N), compute type, it is added to every
// row; only with accumulate false.
struct MatMulArgs {
  Tensor a;
  Tensor b;
  Tensor out;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  const Tensor* bias = nullptr;
};
void MatMul(KernelContext& context, const MatMulArgs& args);

// ---- embedding ----------------------------------------------------------------------------------------------------

// out (T, h) compute = token (V, h)[tokens (T) i32] + position (context, h)[row mod sequence_length].
void EmbeddingForward(KernelContext& context, const Tensor& tokens, const Tensor& token_weight,
                      const Tensor& position_weight, int64_t sequence_length, const Tensor& out);
// d_out (T, h) compute -> d_token (V, h) f32, d_position (context, h) f32. Rows of one token are added in the order of
// the batch.
void EmbeddingBackward(KernelContext& context, const Tensor& tokens, const Tensor& d_out, int64_t sequence_length,
                       const Tensor& d_token, const Tensor& d_position, bool accumulate);

// ---- layer norm ---------------------------------------------------------------------------------------------------

// x, out (T, h) compute; weight, bias (h) compute; mean, rstd (T) f32.
void LayerNormForward(KernelContext& context, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                      const Tensor& out, const Tensor& mean, const Tensor& rstd);
// d_x (T, h) compute: written, or added to when add_to_d_x (the residual path's gradient is there already);
// d_weight, d_bias (h) f32. partials f32 (kColumnPartitions, 2, h).
void LayerNormBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& weight,
                       const Tensor& mean, const Tensor& rstd, const Tensor& d_x, bool add_to_d_x,
                       const Tensor& d_weight, const Tensor& d_bias, bool accumulate, const Tensor& partials);

using muster::kColumnPartitions;

// ---- elementwise --------------------------------------------------------------------------------------------------

// out (T, h) = x (T, h) + residual (T, h), compute. out may be x or residual.
void Add(KernelContext& context, const Tensor& x, const Tensor& residual, const Tensor& out);
// out = gelu(x), the tanh approximation of GPT-2; (T, f) compute.
void GeluForward(KernelContext& context, const Tensor& x, const Tensor& out);
// d_x = d_out * gelu'(x); d_x may be d_out.
void GeluBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& d_x);
// d_bias (n) f32 [+]= column sums of d_out (T, n) compute. partials f32 (kColumnPartitions, n).
void BiasGradient(KernelContext& context, const Tensor& d_out, const Tensor& d_bias, bool accumulate,
                  const Tensor& partials);
void Zero(KernelContext& context, const Tensor& x);
// Same element count, any of f32, bf16, f16; rounding to nearest even.
void Cast(KernelContext& context, const Tensor& from, const Tensor& to);
// out f32 (n) = sum over parts in order, parts f32 (count, n). out may be the first part.
void SumInOrder(KernelContext& context, const Tensor& parts, const Tensor& out);

// ---- attention ----------------------------------------------------------------------------------------------------

// Causal self-attention, tiled; only the log-sum-exp is saved. qkv (T, (heads + 2 kv_heads) d) compute, heads of q,
// then k, then v along a row; out (T, heads d) compute; lse (batch, heads, sequence) f32. Scores are scaled by
// 1/sqrt(d).
struct AttentionShape {
  int64_t batch = 0;
  int64_t sequence = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
};
// Bytes of `workspace` (u8) for this shape in a context of so many threads; a ledger entry. The same for every compute
// type and machine.
inline int64_t AttentionWorkspaceBytes(const AttentionShape& shape, int64_t threads = 1) {
  return muster::AttentionWorkspaceBytes(shape.sequence, shape.heads / shape.kv_heads, shape.head_dim, threads);
}
void AttentionForward(KernelContext& context, const AttentionShape& shape, const Tensor& qkv, const Tensor& out,
                      const Tensor& lse, const Tensor& workspace);
// d_qkv (T, (heads + 2 kv_heads) d) compute, written whole.
void AttentionBackward(KernelContext& context, const AttentionShape& shape, const Tensor& d_out, const Tensor& qkv,
                       const Tensor& out, const Tensor& lse, const Tensor& d_qkv, const Tensor& workspace);

// ---- loss ---------------------------------------------------------------------------------------------------------

inline constexpr int32_t kIgnoredTarget = -1;  // a position that counts neither in the sum nor in the count

// logits (T, V) compute; targets (T) i32; losses (T) f32, 0 where ignored; lse (T) f32.
void CrossEntropyForward(KernelContext& context, const Tensor& logits, const Tensor& targets, const Tensor& losses,
                         const Tensor& lse);
// In place: logits (T, V) becomes scale * (softmax - onehot), zero rows where ignored.
void CrossEntropyBackward(KernelContext& context, const Tensor& logits, const Tensor& targets, const Tensor& lse,
                          float scale);
// f64 sum of f32 values (n), in blocks of kSumBlock in order, to the host (waits for the stream).
double SumToHost(KernelContext& context, const Tensor& values);

// ---- optimizer ----------------------------------------------------------------------------------------------------

// Elements summed in f32 lanes before the f64 total: fixed, so that norms do not move.
inline constexpr int64_t kSumBlock = 4096;
// f64 sum of squares of a logical gradient f32 (n), in blocks of kSumBlock in order. NaN and infinity propagate.
double SumOfSquaresToHost(KernelContext& context, const Tensor& gradient);

struct AdamWArgs {
  Tensor gradient;           // f32 (n)
  Tensor master;             // f32 (n)
  Tensor first;              // f32 (n), exponential average of gradients
  Tensor second;             // f32 (n), of squares
  Tensor parameter;          // compute (n), written from master; may be master itself in fp32
  float gradient_scale = 1;  // the clip factor
  double learning_rate = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  int64_t step = 1;  // from 1, for bias correction
};
// Loshchilov and Hutter 2019, as torch.optim.AdamW computes it: decay by (1 - lr * weight_decay) first.
void AdamW(KernelContext& context, const AdamWArgs& args);

}  // namespace kernels
}  // namespace muster
