#include "worker/kernels/checks.h"
#include "worker/kernels/cuda/backend.h"
#include "worker/kernels/kernels.h"
#include "worker/kernels/launch.h"

namespace muster::kernels {
namespace {

// In place: a product summed in f32 gets the bias of a shorter type.
template <typename Compute>
void AddBias(KernelContext& context, const MatMulArgs& args) {
  Launch(context,
         FinishProductRows<Compute, float>{args.out.as<float>(), args.bias->as<Compute>(), args.out.as<float>(),
                                           args.out.row_stride, args.out.row_stride, false},
         args.out.rows(), args.out.cols());
}

}  // namespace

void MatMul(KernelContext& context, const MatMulArgs& args) {
  const ProfileRange range(context.device(), "matmul");
  CheckMatMul(args);
  context.backend().matmul().Run(args);
  if (args.bias == nullptr || cuda::CublasMatMul::AddsBias(args)) return;
  if (args.a.dtype == DType::kBF16) {
    AddBias<BF16>(context, args);
  } else {
    AddBias<F16>(context, args);
  }
}

}  // namespace muster::kernels
