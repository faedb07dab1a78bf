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

// Which tokens a table has rows for: all of them, or those of one rank where the vocabulary is split over ranks.
struct EmbeddingShape {
  int64_t sequence_length = 0;  // the position of row t is t mod sequence_length
  int64_t vocab = 0;            // of the model; a token outside gives a row of NaN, so that the loss says so
  int64_t first_token = 0;      // row i of the table is token first_token + i
};
// out (T, h) compute = token (rows, h)[tokens (T) i32 - first_token], zero for tokens of other ranks,
// + position (context, h)[position], which may be an empty Tensor.
void EmbeddingForward(KernelContext& context, const EmbeddingShape& shape, const Tensor& tokens,
                      const Tensor& token_weight, const Tensor& position_weight, const Tensor& out);
// d_out (T, h) compute -> d_token (rows, h) f32, d_position (context, h) f32, each or an empty Tensor. Rows of one
// token are added in the order of the batch.
void EmbeddingBackward(KernelContext& context, const EmbeddingShape& shape, const Tensor& tokens, const Tensor& d_out,
                       const Tensor& d_token, const Tensor& d_position, bool accumulate);

// ---- norms --------------------------------------------------------------------------------------------------------

// x, out (T, h) compute; weight, bias (h) compute; mean, rstd (T) f32.
void LayerNormForward(KernelContext& context, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                      const Tensor& out, const Tensor& mean, const Tensor& rstd);
// d_x (T, h) compute: written, or added to when add_to_d_x (the residual path's gradient is there already);
// d_weight, d_bias (h) f32, each of which may be an empty Tensor. partials f32 (kColumnPartitions, 2, h).
void LayerNormBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& weight,
                       const Tensor& mean, const Tensor& rstd, const Tensor& d_x, bool add_to_d_x,
                       const Tensor& d_weight, const Tensor& d_bias, bool accumulate, const Tensor& partials);

// Root-mean-square norm (Zhang and Sennrich 2019), as transformers' LlamaRMSNorm without its rounding on the way:
// out (T, h) = x * rstd * weight (h), rstd (T) f32 = 1 / sqrt(average of x^2 + eps).
void RmsNormForward(KernelContext& context, const Tensor& x, const Tensor& weight, float eps, const Tensor& out,
                    const Tensor& rstd);
// As LayerNormBackward; partials f32 (kColumnPartitions, h).
void RmsNormBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& weight,
                     const Tensor& rstd, const Tensor& d_x, bool add_to_d_x, const Tensor& d_weight, bool accumulate,
                     const Tensor& partials);

using muster::kColumnPartitions;

// ---- elementwise --------------------------------------------------------------------------------------------------

// out (T, h) = x (T, h) + bias (h) + residual (T, h), compute, in that order and rounded once. Without a bias: an empty
// Tensor. out may be x or residual.
void Add(KernelContext& context, const Tensor& x, const Tensor& residual, const Tensor& out,
         const Tensor& bias = Tensor());
// out = gelu(x), the tanh approximation of GPT-2; (T, f) compute.
void GeluForward(KernelContext& context, const Tensor& x, const Tensor& out);
// d_x = d_out * gelu'(x); d_x may be d_out.
void GeluBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& d_x);
// SwiGLU (Shazeer 2020): out (T, f) = silu(gate) * up; gate_up (T, 2f) has the gate's columns, then up's; compute.
void SwiGluForward(KernelContext& context, const Tensor& gate_up, const Tensor& out);
// d_out (T, f), gate_up (T, 2f) -> d_gate_up (T, 2f), which may be neither of them.
void SwiGluBackward(KernelContext& context, const Tensor& d_out, const Tensor& gate_up, const Tensor& d_gate_up);
// d_bias (n) f32 [+]= column sums of d_out (T, n) compute. partials f32 (kColumnPartitions, n).
void BiasGradient(KernelContext& context, const Tensor& d_out, const Tensor& d_bias, bool accumulate,
                  const Tensor& partials);
void Zero(KernelContext& context, const Tensor& x);
// Same element count, any of f32, bf16, f16; rounding to nearest even.
void Cast(KernelContext& context, const Tensor& from, const Tensor& to);
// The same shape, element type and values; rows of either may have gaps. They may not overlap.
void Copy(KernelContext& context, const Tensor& from, const Tensor& to);
// out (n) = sum over parts (count, n) from the first to the last, in f32 and rounded once: what ranks contribute. One
// type of f32, bf16, f16. out may be any one of the parts.
void SumInOrder(KernelContext& context, const Tensor& parts, const Tensor& out);

// ---- attention ----------------------------------------------------------------------------------------------------

// Causal self-attention, tiled; only the log-sum-exp is saved. T = batch x sequence.
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
struct AttentionInput {
  Tensor qkv;  // (T, (heads + 2 kv_heads) d) compute, heads of q, then k, then v along a row
  // Empty, or (T) i32: for each row the position within its sequence at which its document starts. Query i sees the
  // keys from document_starts[i] to i. At most i, and nowhere less than in the row before; the processor aborts
  // otherwise.
  Tensor document_starts = Tensor();
};
// out (T, heads d) compute; lse (batch, heads, sequence) f32. Scores are scaled by 1/sqrt(d).
void AttentionForward(KernelContext& context, const AttentionShape& shape, const AttentionInput& input,
                      const Tensor& out, const Tensor& lse, const Tensor& workspace);
// d_qkv (T, (heads + 2 kv_heads) d) compute, written whole.
void AttentionBackward(KernelContext& context, const AttentionShape& shape, const Tensor& d_out,
                       const AttentionInput& input, const Tensor& out, const Tensor& lse, const Tensor& d_qkv,
                       const Tensor& workspace);

// Rotary position embedding (Su et al. 2021) in the rotate-half layout of transformers' LlamaModel: components i and
// i + d/2 of a head turn together, by position / base^(2i/d).
//
// table f32 (sequence, d): cosines of the d/2 angles of a position, then their sines; RopeTableBytes. Computed in f64.
void FillRopeTable(KernelContext& context, double base, const Tensor& table);
// In place: turns the heads of q and k of every row of qkv (T, (heads + 2 kv_heads) d); the position of row t is
// t mod sequence. With `inverse` it turns them back, which is also the gradient of turning.
void Rope(KernelContext& context, const Tensor& table, const AttentionShape& shape, const Tensor& qkv, bool inverse);

// ---- loss ---------------------------------------------------------------------------------------------------------

inline constexpr int32_t kIgnoredTarget = -1;  // a position that counts neither in the sum nor in the count

// The classes that columns of logits stand for: column c is class first + c; columns from `count` on are padding, which
// has no part in the sum and no gradient.
struct ClassRange {
  int64_t first = 0;
  int64_t count = 0;
};
// Cross entropy in two halves, so that the vocabulary may be split over ranks. Of each row of logits (T, columns)
// compute: stats (T, 3) f32 = the largest logit, the sum of exp(logit - largest), and the target's logit, or 0 when it
// is not among these classes. targets (T) i32.
void CrossEntropyStatistics(KernelContext& context, const Tensor& logits, const Tensor& targets,
                            const ClassRange& classes, const Tensor& stats);
// stats (parts, T, 3), a part for each rank, combined in order -> losses (T) f32, 0 where ignored and NaN for a target
// outside the `vocab` classes of the model; lse (T) f32.
void CrossEntropyFromStatistics(KernelContext& context, const Tensor& stats, const Tensor& targets, int64_t vocab,
                                const Tensor& losses, const Tensor& lse);
// In place: logits (T, columns) becomes scale * (softmax - onehot), zero rows where ignored.
void CrossEntropyBackward(KernelContext& context, const Tensor& logits, const Tensor& targets,
                          const ClassRange& classes, const Tensor& lse, float scale);
// f64 sum of f32 values (n), in blocks of kSumBlock in order, to the host (waits for the stream).
double SumToHost(KernelContext& context, const Tensor& values);

// ---- optimizer ----------------------------------------------------------------------------------------------------

// Elements summed in f32 lanes before the f64 total: fixed, so that norms do not move.
inline constexpr int64_t kSumBlock = 4096;
// f64 sum of squares of a gradient f32 (n), in blocks of kSumBlock in order from its first element on. Not finite when
// an element is not, and when the squares of a block add up to more than f32 holds: from elements of 3e17 on.
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
