// What a KernelContext holds when the kernels run on the processor.
//
// Owned by the context; used by the files of this folder only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "worker/kernels/context.h"
#include "worker/kernels/cpu/matmul_onednn.h"
#include "worker/kernels/cpu/row_table.h"
#include "worker/kernels/launch.h"

namespace muster {

class KernelContext::Backend {
 public:
  // workspace: KernelWorkspaceBytes(threads) bytes.
  Backend(const kernels::RowTable& rows, int threads, void* workspace);

  const kernels::RowTable& row_table() const { return rows_; }
  // On all threads, for whole operations.
  kernels::OneDnnMatMul& matmul() { return *matmul_; }
  // On one thread, for the work that `thread` does inside a parallel region. Not to be mixed with matmul() in time:
  // they share the workspace.
  kernels::OneDnnMatMul& matmul_of(int thread) { return *tile_matmuls_[static_cast<size_t>(thread)]; }
  float* reduction_scratch() { return reduction_scratch_.data(); }

 private:
  const kernels::RowTable& rows_;
  std::vector<std::unique_ptr<kernels::OneDnnMatMul>> tile_matmuls_;  // one for each thread
  std::unique_ptr<kernels::OneDnnMatMul> threaded_matmul_;            // null when there is one thread
  kernels::OneDnnMatMul* matmul_ = nullptr;
  std::array<float, kernels::kReductionBlocks> reduction_scratch_;
};

}  // namespace muster
