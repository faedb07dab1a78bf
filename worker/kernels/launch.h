// The little that a back-end does for the operations that are all row kernels (operations/).
//
// Defined by cpu/launch.cc and cuda/launchers.cu. Plain C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/kernels.h"
#include "worker/kernels/row_kernels.h"

namespace muster::kernels {

// Runs the kernel at that place of AllRowKernels over (rows, cols).
void LaunchByIndex(KernelContext& context, int index, bool columns_independent, const void* kernel, int64_t rows,
                   int64_t cols);

// Enqueues `kernel` over (rows, cols) on the context's stream.
template <typename Kernel>
void Launch(KernelContext& context, const Kernel& kernel, int64_t rows, int64_t cols) {
  LaunchByIndex(context, kRowKernelIndex<Kernel>, Kernel::kColumnsIndependent, &kernel, rows, cols);
}

// `bytes` zero bytes from `start` on, on the stream.
void FillZero(KernelContext& context, void* start, int64_t bytes);

// `rows` times `row_bytes` from one place to another of the device's memory, on the stream.
struct StridedRows {
  void* start;
  int64_t stride_bytes;
};
void CopyRows(KernelContext& context, const StridedRows& to, const StridedRows& from, int64_t rows, int64_t row_bytes);

// Memory of the device for at least kReductionBlocks f32 values that wait to be added on the host; one use at a time.
inline constexpr int64_t kReductionBlocks = 1024;
float* ReductionScratch(KernelContext& context);

}  // namespace muster::kernels
