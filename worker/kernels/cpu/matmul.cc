#include "worker/kernels/checks.h"
#include "worker/kernels/cpu/backend.h"
#include "worker/kernels/kernels.h"

namespace muster::kernels {

void MatMul(KernelContext& context, const MatMulArgs& args) {
  const ProfileRange range(context.device(), "matmul");
  CheckMatMul(args);
  context.backend().matmul().Run(args);
}

}  // namespace muster::kernels
