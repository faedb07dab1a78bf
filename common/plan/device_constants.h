// Memory that kernels need beside the tensors of the model, as functions of the job alone. The ledger lists these bytes
// and the kernels live within them, so a plan made on a laptop holds on every machine: what differs between machines
// (instruction sets, library versions) must fit the same constants. tests/worker/kernels checks that it does.
//
// No includes but these: CUDA sources read this file too. Plain C++17.
#pragma once

#include <cstdint>

namespace muster {

// oneDNN's user-mode scratchpad of one thread. The largest seen over the linear layers of GPT-2's models, fp32 and
// bf16, one and four threads, is 1.64 MiB: gradients added to what is there, and bf16 rows that are a power of two
// apart. A primitive that asks for more is not used.
inline constexpr int64_t kMatMulScratchBytesPerThread = int64_t{2} << 20;

// Where the machine has no matmul of the compute type, operands are widened to f32 panel by panel: kWidenRows x
// kWidenDepth of each operand, and kWidenRows x kWidenRows of the result. Large enough that the copies cost under a
// tenth of the product.
inline constexpr int64_t kWidenRows = 256;
inline constexpr int64_t kWidenDepth = 1024;
inline constexpr int64_t kWidenBytesPerThread = 4 * (2 * kWidenRows * kWidenDepth + kWidenRows * kWidenRows);  // f32

// The workspace of a rank's KernelContext. threads >= 1, from the job.
constexpr int64_t KernelWorkspaceBytes(int64_t threads) {
  return threads * (kMatMulScratchBytesPerThread + kWidenBytesPerThread);
}

// Column sums (gradients of biases and norms) run over this many fixed blocks of rows, whose f32 partial sums are then
// added in order.
inline constexpr int64_t kColumnPartitions = 16;

// Rows and columns of one tile of attention scores: with these a tile and its operands stay in a 1 MiB second-level
// cache.
inline constexpr int64_t kAttentionTile = 128;

// Bytes of the workspace that attention takes, forward or backward, whatever the compute type: for each thread two f32
// and two compute-type tiles of scores, two f32 tiles (rows x head_dim) of sums, three row statistics, and the query
// gradient and the softmax correction of the heads that share one key head. group = heads / kv_heads.
constexpr int64_t AttentionWorkspaceBytes(int64_t sequence, int64_t group, int64_t head_dim, int64_t threads) {
  const int64_t tiles = 4 * kAttentionTile * kAttentionTile + 2 * kAttentionTile * head_dim + 3 * kAttentionTile;
  const int64_t group_sums = group * sequence * (head_dim + 1);
  const int64_t floats = (tiles + group_sums + 63) / 64 * 64;  // whole units of 256 bytes
  return 4 * floats * threads;
}

// The table of rotary position embeddings, f32 (sequence, head_dim): cosines and sines of half as many angles.
constexpr int64_t RopeTableBytes(int64_t sequence, int64_t head_dim) { return 4 * sequence * head_dim; }

// What cross entropy keeps of a row and a rank's part of the vocabulary between its two halves: f32 values.
inline constexpr int64_t kCrossEntropyStatistics = 3;

}  // namespace muster
