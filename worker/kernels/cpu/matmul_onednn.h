// Matmul by oneDNN on a fixed number of threads, with every primitive kept: making one again costs 16 us, running a
// small one 2 us.
//
// One per context for whole operations, and one per thread for attention's tiles. For one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "absl/container/flat_hash_map.h"
#include "worker/kernels/cpu/row_table.h"
#include "worker/kernels/kernels.h"

namespace muster::kernels {

class OneDnnMatMul {
 public:
  // scratch: kMatMulScratchBytesPerThread x threads. widening: kWidenBytesPerThread x threads, where operands are
  // widened to f32 panel by panel when the machine has no matmul of their type. Both from the context's workspace.
  OneDnnMatMul(const RowTable& rows, int threads, void* scratch, void* widening);

  ~OneDnnMatMul();

  // As kernels::MatMul. Bits depend on shapes, strides and threads, not on what was run before.
  void Run(const MatMulArgs& args);

  // Whether oneDNN has a fast implementation that fits the scratch; otherwise Run widens. Reads no data.
  bool IsNative(const MatMulArgs& args);

 private:
  // All that a primitive is made for.
  struct Key {
    int64_t m, n, k;
    int64_t a_stride, b_stride, out_stride;
    DType type, out_type;
    bool transpose_a, transpose_b, accumulate, bias;

    bool operator==(const Key& other) const;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.m, key.n, key.k, key.a_stride, key.b_stride, key.out_stride, key.type,
                        key.out_type, key.transpose_a, key.transpose_b, key.accumulate, key.bias);
    }
  };
  // Null where oneDNN has no fast implementation.
  struct Primitive;

  static Key KeyOf(const MatMulArgs& args);
  Primitive* Find(const Key& key);
  std::unique_ptr<Primitive> Make(const Key& key) const;
  bool RunNative(const MatMulArgs& args);  // false, and nothing done, where there is no primitive
  void RunWidened(const MatMulArgs& args);
  Tensor Widen(const Tensor& operand, bool transpose, int64_t row, int64_t rows, int64_t col, int64_t cols,
               float* panel) const;
  void Finish(DType compute, const Tensor& product, const Tensor* bias, const Tensor& out, bool accumulate) const;

  const RowTable& rows_;
  const int threads_;
  void* const scratch_;
  float* const widening_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  absl::flat_hash_map<Key, std::unique_ptr<Primitive>> primitives_;
};

}  // namespace muster::kernels
