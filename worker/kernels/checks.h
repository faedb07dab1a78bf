// The shapes that callers owe to the operations that each back-end writes for itself. A wrong one is a bug: the process
// aborts saying which.
#pragma once

#include "worker/kernels/kernels.h"

namespace muster::kernels {

void CheckMatMul(const MatMulArgs& args);
void CheckAttention(const AttentionShape& shape, const AttentionInput& input, const Tensor& out, const Tensor& lse,
                    const Tensor& workspace, int64_t threads);

}  // namespace muster::kernels
