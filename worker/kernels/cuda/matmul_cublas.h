// Matmul by cuBLASLt, with the algorithm for every shape kept.
//
// One per context; for the thread that trains.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "worker/kernels/kernels.h"

namespace muster::kernels::cuda {

class CublasMatMul {
 public:
  // workspace: kMatMulScratchBytesPerThread bytes of the device. Only algorithms that fit in it are taken.
  static absl::StatusOr<std::unique_ptr<CublasMatMul>> Create(cudaStream_t stream, void* workspace);
  ~CublasMatMul();

  // As kernels::MatMul, without the bias where the result is f32 and the operands are not: cuBLASLt adds no such bias,
  // and the caller does.
  void Run(const MatMulArgs& args);
  static bool AddsBias(const MatMulArgs& args);

 private:
  // All that an algorithm is chosen for.
  struct Key {
    int64_t m, n, k;
    int64_t a_stride, b_stride, out_stride;
    int a_alignment, b_alignment, out_alignment;
    DType type, out_type;
    bool transpose_a, transpose_b, bias;

    bool operator==(const Key& other) const;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.m, key.n, key.k, key.a_stride, key.b_stride, key.out_stride, key.a_alignment,
                        key.b_alignment, key.out_alignment, key.type, key.out_type, key.transpose_a, key.transpose_b,
                        key.bias);
    }
  };
  struct Plan;

  CublasMatMul(cublasLtHandle_t handle, cudaStream_t stream, void* workspace);
  std::unique_ptr<Plan> MakePlan(const Key& key) const;

  const cublasLtHandle_t handle_;
  const cudaStream_t stream_;
  void* const workspace_;
  absl::flat_hash_map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace muster::kernels::cuda
