#include "worker/kernels/checks.h"

#include "common/base/check.h"

namespace muster::kernels {

void CheckMatMul(const MatMulArgs& args) {
  MUSTER_CHECK(args.a.rank == 2 && args.b.rank == 2 && args.out.rank == 2, "matmul of ", args.a.rank, "-, ",
               args.b.rank, "- and ", args.out.rank, "-dimensional tensors");
  const int64_t m = args.transpose_a ? args.a.cols() : args.a.rows();
  const int64_t k = args.transpose_a ? args.a.rows() : args.a.cols();
  const int64_t b_rows = args.transpose_b ? args.b.cols() : args.b.rows();
  const int64_t n = args.transpose_b ? args.b.rows() : args.b.cols();
  MUSTER_CHECK(k == b_rows && args.out.rows() == m && args.out.cols() == n, "(", m, ", ", k, ") x (", b_rows, ", ", n,
               ") to (", args.out.rows(), ", ", args.out.cols(), ")");
  MUSTER_CHECK(m > 0 && n > 0 && k > 0);
  MUSTER_CHECK(args.a.dtype == args.b.dtype && (args.out.dtype == args.a.dtype || args.out.dtype == DType::kF32),
               "element types ", static_cast<int>(args.a.dtype), " x ", static_cast<int>(args.b.dtype), " to ",
               static_cast<int>(args.out.dtype));
  if (args.bias == nullptr) return;
  MUSTER_CHECK(!args.accumulate, "a bias would be added again and again");
  MUSTER_CHECK(args.bias->dtype == args.a.dtype && args.bias->elements() == n, "a bias of ", args.bias->elements(),
               " for ", n, " columns");
}

void CheckAttention(const AttentionShape& shape, const AttentionInput& input, const Tensor& out, const Tensor& lse,
                    const Tensor& workspace, int64_t threads) {
  MUSTER_CHECK(shape.batch > 0 && shape.sequence > 0 && shape.head_dim > 0 && shape.kv_heads > 0);
  MUSTER_CHECK(shape.heads % shape.kv_heads == 0, shape.heads, " heads over ", shape.kv_heads, " key heads");
  const int64_t rows = shape.batch * shape.sequence;
  const Tensor& qkv = input.qkv;
  MUSTER_CHECK(qkv.rows() == rows && qkv.cols() == (shape.heads + 2 * shape.kv_heads) * shape.head_dim, "qkv (",
               qkv.rows(), ", ", qkv.cols(), ")");
  MUSTER_CHECK(out.rows() == rows && out.cols() == shape.heads * shape.head_dim && out.dtype == qkv.dtype, "out (",
               out.rows(), ", ", out.cols(), ")");
  MUSTER_CHECK(lse.dtype == DType::kF32 && lse.elements() == rows * shape.heads && IsDense(lse));
  const Tensor& starts = input.document_starts;
  MUSTER_CHECK(starts.data == nullptr || (starts.dtype == DType::kI32 && starts.elements() == rows && IsDense(starts)),
               starts.elements(), " document starts for ", rows, " rows");
  MUSTER_CHECK(workspace.bytes() >= AttentionWorkspaceBytes(shape, threads), "a workspace of ", workspace.bytes(),
               " bytes, wanted ", AttentionWorkspaceBytes(shape, threads));
}

}  // namespace muster::kernels
