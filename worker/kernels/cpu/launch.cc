#include "worker/kernels/launch.h"

#include <algorithm>
#include <cstring>

#include "worker/kernels/cpu/backend.h"

namespace muster::kernels {
namespace {

// Below this a second thread costs more than it does.
constexpr int64_t kElementsPerThread = 16384;

// A single long row is done in windows of this many columns, so that kernels which walk it more than once (AdamW, sums
// over parts) find it in the first-level cache: 4 arrays of f32 are 32 KiB.
constexpr int64_t kWindow = 2048;

// Share `part` of `parts` of [0, count), in whole units so that two threads never share a cache line.
int64_t ShareBegin(int64_t count, int64_t unit, int64_t part, int64_t parts) {
  const int64_t units = (count + unit - 1) / unit;
  return std::min(count, units * part / parts * unit);
}

using RunFunction = void (*)(const void* kernel, const RowBox& box);

void RunWindows(RunFunction run, const void* kernel, RowBox box) {
  const int64_t last_col = box.last_col;
  for (int64_t begin = box.first_col; begin < last_col; begin += kWindow) {
    box.first_col = begin;
    box.last_col = std::min(last_col, begin + kWindow);
    run(kernel, box);
  }
}

}  // namespace

// Elements do not depend on which thread computes them, so the cuts below change no bit.
void LaunchByIndex(KernelContext& context, int index, bool columns_independent, const void* kernel, int64_t rows,
                   int64_t cols) {
  const RunFunction run = context.backend().row_table().run[index];
  const int64_t threads = rows * cols < 2 * kElementsPerThread ? 1 : context.threads();
  const bool cut_columns = columns_independent && rows < threads;
  const auto run_share = [&](int64_t part) {
    RowBox box{0, rows, cols, 0, cols};
    if (cut_columns) {
      box.first_col = ShareBegin(cols, 64, part, threads);
      box.last_col = ShareBegin(cols, 64, part + 1, threads);
    } else {
      box.first_row = ShareBegin(rows, 1, part, threads);
      box.last_row = ShareBegin(rows, 1, part + 1, threads);
    }
    if (columns_independent && rows == 1) {
      RunWindows(run, kernel, box);
    } else {
      run(kernel, box);
    }
  };
  if (threads == 1) {
    run_share(0);
    return;
  }
  const int team = static_cast<int>(threads);
#pragma omp parallel for num_threads(team) schedule(static, 1)
  for (int64_t part = 0; part < threads; ++part) run_share(part);
}

void FillZero(KernelContext&, void* start, int64_t bytes) { std::memset(start, 0, static_cast<size_t>(bytes)); }

void CopyRows(KernelContext&, const StridedRows& to, const StridedRows& from, int64_t rows, int64_t row_bytes) {
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(static_cast<char*>(to.start) + row * to.stride_bytes,
                static_cast<const char*>(from.start) + row * from.stride_bytes, static_cast<size_t>(row_bytes));
  }
}

float* ReductionScratch(KernelContext& context) { return context.backend().reduction_scratch(); }

}  // namespace muster::kernels
