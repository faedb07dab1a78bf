// Attention on a GPU: thread blocks (worker/kernels/blocks/attention.h) for all heads of all sequences at once. The
// workspace stays unused.
#include "worker/kernels/checks.h"
#include "worker/kernels/cuda/attention_blocks.h"
#include "worker/kernels/cuda/backend.h"
#include "worker/kernels/kernels.h"

namespace muster::kernels {

void AttentionForward(KernelContext& context, const AttentionShape& shape, const AttentionInput& input,
                      const Tensor& out, const Tensor& lse, const Tensor& workspace) {
  const ProfileRange range(context.device(), "attention");
  CheckAttention(shape, input, out, lse, workspace, 1);
  cuda::LaunchAttentionForward(context.backend().stream(), shape, input, out, lse);
}

void AttentionBackward(KernelContext& context, const AttentionShape& shape, const Tensor& d_out,
                       const AttentionInput& input, const Tensor& out, const Tensor& lse, const Tensor& d_qkv,
                       const Tensor& workspace) {
  const ProfileRange range(context.device(), "attention");
  CheckAttention(shape, input, out, lse, workspace, 1);
  CheckAttention(shape, {d_qkv}, d_out, lse, workspace, 1);
  cuda::LaunchAttentionBackward(context.backend().stream(), shape, d_out, input, out, lse, d_qkv);
}

}  // namespace muster::kernels
