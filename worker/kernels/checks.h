// The shapes that callers owe to the operations that each back-end writes for itself. A wrong one is a bug: the process
// aborts saying which.
#pragma once

#include "worker/kernels/kernels.h"

namespace muster::kernels {

void CheckMatMul(const MatMulArgs& args);
void CheckAttention(const AttentionShape& shape, const Tensor& qkv, const Tensor& out, const Tensor& lse,
                    const Tensor& workspace, int64_t threads);

// on_host: the starts' values.
void CheckDocumentStarts(const AttentionShape& shape, const Tensor& starts, const int32_t* on_host);

}  // namespace muster::kernels
