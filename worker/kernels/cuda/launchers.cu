// Every row kernel compiled for CUDA, and its launch.
#include <cstdint>

#include "worker/kernels/cuda/block_row.cuh"
#include "worker/kernels/cuda/stream.h"
#include "worker/kernels/launch.h"

namespace muster::kernels {
namespace cuda {
namespace {

// Block b does window b mod windows of row b / windows.
template <typename Row, typename Kernel>
__global__ void __launch_bounds__(Row::kThreads) RunRow(const Kernel kernel, int64_t cols, int64_t windows) {
  __shared__ typename Row::Shared shared;
  const Row row(shared, cols, static_cast<int64_t>(blockIdx.x) % windows);
  kernel(row, static_cast<int64_t>(blockIdx.x) / windows);
}

template <typename Row, typename Kernel>
void LaunchAs(cudaStream_t stream, const Kernel& kernel, int64_t rows, int64_t cols, int64_t windows) {
  RunRow<Row, Kernel><<<static_cast<unsigned>(rows * windows), Row::kThreads, 0, stream>>>(kernel, cols, windows);
  CheckLaunch(cudaGetLastError(), "row kernel");
}

// Short rows, such as those of attention's tiles, are a warp's. Longer ones that are summed are held whole by one
// block: in registers up to 8192 columns, then in memory. Other rows are cut into windows, so that a single long row
// fills the device.
template <typename Kernel>
void LaunchOne(cudaStream_t stream, const void* kernel_in, int64_t rows, int64_t cols) {
  const Kernel& kernel = *static_cast<const Kernel*>(kernel_in);
  if constexpr (Kernel::kColumnsIndependent) {
    if (cols <= PackedRow<32, 1>::kColumns) return LaunchAs<PackedRow<32, 1>>(stream, kernel, rows, cols, 1);
    using Window = PackedRow<128, 1>;
    LaunchAs<Window>(stream, kernel, rows, cols, (cols + Window::kColumns - 1) / Window::kColumns);
  } else if (cols <= PackedRow<32, 1>::kColumns) {
    LaunchAs<PackedRow<32, 1>>(stream, kernel, rows, cols, 1);
  } else if (cols <= PackedRow<256, 1>::kColumns) {
    LaunchAs<PackedRow<256, 1>>(stream, kernel, rows, cols, 1);
  } else if (cols <= PackedRow<512, 2>::kColumns) {
    LaunchAs<PackedRow<512, 2>>(stream, kernel, rows, cols, 1);
  } else {
    LaunchAs<StreamedRow<1024>>(stream, kernel, rows, cols, 1);
  }
}

struct LaunchTable {
  void (*launch[kRowKernelCount])(cudaStream_t stream, const void* kernel, int64_t rows, int64_t cols);
};

template <typename... Kernels>
constexpr LaunchTable MakeTable(KernelList<Kernels...>) {
  return LaunchTable{{&LaunchOne<Kernels>...}};
}

}  // namespace
}  // namespace cuda

void LaunchByIndex(KernelContext& context, int index, bool, const void* kernel, int64_t rows, int64_t cols) {
  static constexpr cuda::LaunchTable kTable = cuda::MakeTable(AllRowKernels{});
  if (rows == 0 || cols == 0) return;
  kTable.launch[index](cuda::StreamOf(context), kernel, rows, cols);
}

void FillZero(KernelContext& context, void* start, int64_t bytes) {
  cuda::CheckLaunch(cudaMemsetAsync(start, 0, static_cast<size_t>(bytes), cuda::StreamOf(context)), "cudaMemsetAsync");
}

void CopyRows(KernelContext& context, const StridedRows& to, const StridedRows& from, int64_t rows, int64_t row_bytes) {
  const size_t width = static_cast<size_t>(row_bytes);
  // A single row has no stride to speak of, and CUDA wants one that is no shorter than the row.
  const size_t to_stride = rows == 1 ? width : static_cast<size_t>(to.stride_bytes);
  const size_t from_stride = rows == 1 ? width : static_cast<size_t>(from.stride_bytes);
  cuda::CheckLaunch(cudaMemcpy2DAsync(to.start, to_stride, from.start, from_stride, width, static_cast<size_t>(rows),
                                      cudaMemcpyDeviceToDevice, cuda::StreamOf(context)),
                    "cudaMemcpy2DAsync");
}

}  // namespace muster::kernels
