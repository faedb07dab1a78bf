// The row kernels compiled for one instruction set, as a table of functions.
#pragma once

#include <cstdint>

#include "worker/kernels/row_kernels.h"

namespace muster::kernels {

// Rows [first_row, last_row) and, of each, columns [first_col, last_col) of `cols`: all of them unless the kernel's
// columns are independent.
struct RowBox {
  int64_t first_row = 0;
  int64_t last_row = 0;
  int64_t cols = 0;
  int64_t first_col = 0;
  int64_t last_col = 0;
};

// Plain data, made by the compiler, so that no code of an instruction set runs before the set was chosen.
struct RowTable {
  const char* isa;                                                  // "x86-64-v4"
  void (*run[kRowKernelCount])(const void* kernel, const RowBox&);  // by kRowKernelIndex
};

template <typename Kernel>
void RunRows(const RowTable& table, const Kernel& kernel, const RowBox& box) {
  table.run[kRowKernelIndex<Kernel>](&kernel, box);
}

}  // namespace muster::kernels
