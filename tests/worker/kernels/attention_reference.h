// Attention's f64 reference, and what its tests share: its tensors, and documents to mask it by.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {

// All tensors of one attention, forward and backward.
struct Attention {
  // A document starts wherever `document_starts` says; without, nothing is masked but the future.
  Attention(const kernels::AttentionShape& shape_in, DType type_in, int threads, uint64_t seed,
            const std::vector<double>& document_starts = {})
      : shape(shape_in),
        type(type_in),
        context(threads),
        qkv(OwnedTensor::Random(type, rows(), (shape.heads + 2 * shape.kv_heads) * shape.head_dim, seed)),
        d_out(OwnedTensor::Random(type, rows(), shape.heads * shape.head_dim, seed + 1)),
        out(type, rows(), shape.heads * shape.head_dim),
        lse(DType::kF32, shape.batch * shape.heads, shape.sequence),
        d_qkv(type, rows(), qkv.tensor().cols()),
        workspace(DType::kU8, 1, kernels::AttentionWorkspaceBytes(shape, threads)),
        starts(DType::kI32, 1, rows()),
        input{qkv.tensor()} {
    if (document_starts.empty()) return;
    starts = OwnedTensor::Of(DType::kI32, 1, rows(), document_starts);
    input.document_starts = starts.vector();
  }

  int64_t rows() const { return shape.batch * shape.sequence; }
  void Forward() { kernels::AttentionForward(*context, shape, input, out.tensor(), lse.tensor(), workspace.vector()); }
  void Backward() {
    kernels::AttentionBackward(*context, shape, d_out.tensor(), input, out.tensor(), lse.tensor(), d_qkv.tensor(),
                               workspace.vector());
  }

  kernels::AttentionShape shape;
  DType type;
  TestContext context;
  OwnedTensor qkv, d_out, out, lse, d_qkv, workspace, starts;  // starts: zeros where there are no documents
  kernels::AttentionInput input;
};

// softmax(Q K^T / sqrt(d)) V, and its derivative.
struct AttentionReference {
  std::vector<double> out, lse, d_qkv;
};
AttentionReference Expected(const Attention& attention);

// Probabilities and score gradients are rounded to the compute type once each, and the sums over keys average that out.
inline double AttentionTolerance(DType type) { return type == DType::kF32 ? 1e-5 : 4 * RoundingError(type); }

// A document starts at every position for which `starts_here(sequence, position)`, and at 0.
std::vector<double> Documents(const kernels::AttentionShape& shape,
                              const std::function<bool(int64_t, int64_t)>& starts_here);

// Of several tiles, with documents shorter and longer than one, at and across their edges, other in each sequence.
inline constexpr kernels::AttentionShape kDocumentShape{2, 420, 4, 2, 32};
std::vector<double> UnevenDocuments();

}  // namespace muster
