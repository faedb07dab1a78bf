// Which block kernels an attention takes, by element type and head size, with their arguments filled in: for the
// launcher, and for tests that run them on the processor. Shapes as in kernels.h. Plain C++17.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/kernels/blocks/attention.h"
#include "worker/kernels/kernels.h"

namespace muster::kernels {

template <int kTile>
struct TileRows {};

// Calls f(element, TileRows): such tiles that six of them and two squares of scores fit into the 163 KiB of shared
// memory that a block may have on compute capability 8.0, for heads of up to 384 elements.
template <typename F>
void WithTypeAndTile(const AttentionShape& shape, DType type, F f) {
  const auto with_tile = [&](auto element) {
    if (shape.head_dim <= 64) {
      f(element, TileRows<64>());
    } else if (shape.head_dim <= 128) {
      f(element, TileRows<32>());
    } else {
      f(element, TileRows<16>());
    }
  };
  if (type == DType::kF32) with_tile(float{});
  if (type == DType::kBF16) with_tile(BF16{});
  if (type == DType::kF16) with_tile(F16{});
}

template <typename T, int kTile>
AttentionBlocks<T, kTile> BlocksOf(const AttentionShape& shape, const AttentionInput& input) {
  return {shape, input.qkv.as<T>(), input.document_starts.as<int32_t>(), input.qkv.row_stride,
          static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)))};
}

// Calls run(kernel) for kernels::AttentionForward.
template <typename Run>
void RunForwardBlocks(const AttentionShape& shape, const AttentionInput& input, const Tensor& out, const Tensor& lse,
                      Run run) {
  const auto run_as = [&](auto element, auto rows) { RunForwardBlocksAs(shape, input, out, lse, run, element, rows); };
  WithTypeAndTile(shape, input.qkv.dtype, run_as);
}
template <typename Run, typename T, int kTile>
void RunForwardBlocksAs(const AttentionShape& shape, const AttentionInput& input, const Tensor& out, const Tensor& lse,
                        Run run, T, TileRows<kTile>) {
  run(AttentionForwardBlocks<T, kTile>{BlocksOf<T, kTile>(shape, input), out.as<T>(), out.row_stride, lse.as<float>()});
}

// Calls run(kernel) for each of the kernels of kernels::AttentionBackward.
template <typename Run>
void RunBackwardBlocks(const AttentionShape& shape, const Tensor& d_out, const AttentionInput& input, const Tensor& out,
                       const Tensor& lse, const Tensor& d_qkv, Run run) {
  const auto run_as = [&](auto element, auto rows) {
    RunBackwardBlocksAs(shape, d_out, input, out, lse, d_qkv, run, element, rows);
  };
  WithTypeAndTile(shape, input.qkv.dtype, run_as);
}
template <typename Run, typename T, int kTile>
void RunBackwardBlocksAs(const AttentionShape& shape, const Tensor& d_out, const AttentionInput& input,
                         const Tensor& out, const Tensor& lse, const Tensor& d_qkv, Run run, T, TileRows<kTile>) {
  const AttentionGradientBlocks<T, kTile> common{BlocksOf<T, kTile>(shape, input),
                                                 d_out.as<T>(),
                                                 out.as<T>(),
                                                 lse.as<float>(),
                                                 d_qkv.as<T>(),
                                                 d_out.row_stride,
                                                 out.row_stride,
                                                 d_qkv.row_stride};
  run(AttentionQueryGradientBlocks<T, kTile>{common});
  run(AttentionKeyGradientBlocks<T, kTile>{common});
}

}  // namespace muster::kernels
