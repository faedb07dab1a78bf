#include "worker/kernels/cuda/matmul_cublas.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace muster::kernels::cuda {
namespace {

void Check(cublasStatus_t status, const char* call) {
  MUSTER_CHECK(status == CUBLAS_STATUS_SUCCESS, call, ": ", cublasLtGetStatusString(status));
}

cudaDataType_t CudaType(DType type) {
  switch (type) {
    case DType::kF32:
      return CUDA_R_32F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kI32:
    case DType::kU8:
      break;
  }
  MUSTER_CHECK(false, "no matmul of element type ", static_cast<int>(type));
  return CUDA_R_32F;
}

// The largest power of two up to 16 that the address is a multiple of: cuBLASLt's fast algorithms want 16.
int AlignmentOf(const void* data) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  return static_cast<int>(std::min<uintptr_t>(16, address & (~address + 1)));
}

}  // namespace

bool CublasMatMul::Key::operator==(const Key& other) const {
  const auto tie = [](const Key& key) {
    return std::tie(key.m, key.n, key.k, key.a_stride, key.b_stride, key.out_stride, key.a_alignment, key.b_alignment,
                    key.out_alignment, key.type, key.out_type, key.transpose_a, key.transpose_b, key.bias);
  };
  return tie(*this) == tie(other);
}

// cuBLASLt's matrices are column-major: a row-major matrix is the transpose of one. So it computes out^T = b^T a^T,
// with b as its first operand.
struct CublasMatMul::Plan {
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {first, second, out}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
    if (product != nullptr) cublasLtMatmulDescDestroy(product);
  }

  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr;   // b
  cublasLtMatrixLayout_t second = nullptr;  // a
  cublasLtMatrixLayout_t out = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

absl::StatusOr<std::unique_ptr<CublasMatMul>> CublasMatMul::Create(cudaStream_t stream, void* workspace) {
  cublasLtHandle_t handle = nullptr;
  const cublasStatus_t status = cublasLtCreate(&handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return absl::InternalError(absl::StrCat("cublasLtCreate: ", cublasLtGetStatusString(status)));
  }
  return absl::WrapUnique(new CublasMatMul(handle, stream, workspace));
}

CublasMatMul::CublasMatMul(cublasLtHandle_t handle, cudaStream_t stream, void* workspace)
    : handle_(handle), stream_(stream), workspace_(workspace) {}

CublasMatMul::~CublasMatMul() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

std::unique_ptr<CublasMatMul::Plan> CublasMatMul::MakePlan(const Key& key) const {
  auto plan = std::make_unique<Plan>();
  Check(cublasLtMatmulDescCreate(&plan->product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    Check(cublasLtMatmulDescSetAttribute(plan->product, attribute, &value, sizeof(value)), "matmul attribute");
  };
  const cublasOperation_t first_operation = key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second_operation = key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(CUBLASLT_MATMUL_DESC_TRANSA, first_operation);
  set(CUBLASLT_MATMUL_DESC_TRANSB, second_operation);
  if (key.bias) set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  const auto layout = [](cublasLtMatrixLayout_t* made, DType type, int64_t rows, int64_t cols, int64_t stride) {
    Check(cublasLtMatrixLayoutCreate(made, CudaType(type), static_cast<uint64_t>(rows), static_cast<uint64_t>(cols),
                                     stride),
          "cublasLtMatrixLayoutCreate");
  };
  layout(&plan->first, key.type, key.transpose_b ? key.k : key.n, key.transpose_b ? key.n : key.k, key.b_stride);
  layout(&plan->second, key.type, key.transpose_a ? key.m : key.k, key.transpose_a ? key.k : key.m, key.a_stride);
  layout(&plan->out, key.out_type, key.n, key.m, key.out_stride);

  cublasLtMatmulPreference_t preference = nullptr;
  Check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    Check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)), "matmul preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kMatMulScratchBytesPerThread));
  // Split sums only through the workspace, in f32 and in order: the bits repeat.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(key.b_alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(key.a_alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(key.out_alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(key.out_alignment));
  cublasLtMatmulHeuristicResult_t chosen{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, plan->product, plan->first, plan->second,
                                                               plan->out, plan->out, preference, 1, &chosen, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  Check(status, "cublasLtMatmulAlgoGetHeuristic");
  MUSTER_CHECK(found == 1, "cuBLASLt has no algorithm for (", key.m, ", ", key.k, ") x (", key.k, ", ", key.n, ")");
  plan->algorithm = chosen.algo;
  return plan;
}

bool CublasMatMul::AddsBias(const MatMulArgs& args) { return args.out.dtype == args.a.dtype; }

void CublasMatMul::Run(const MatMulArgs& args) {
  Key key{};
  key.m = args.out.rows();
  key.n = args.out.cols();
  key.k = args.transpose_a ? args.a.rows() : args.a.cols();
  key.a_stride = args.a.row_stride;
  key.b_stride = args.b.row_stride;
  key.out_stride = args.out.row_stride;
  key.a_alignment = AlignmentOf(args.a.data);
  key.b_alignment = AlignmentOf(args.b.data);
  key.out_alignment = AlignmentOf(args.out.data);
  key.type = args.a.dtype;
  key.out_type = args.out.dtype;
  key.transpose_a = args.transpose_a;
  key.transpose_b = args.transpose_b;
  key.bias = args.bias != nullptr && AddsBias(args);
  auto found = plans_.find(key);
  if (found == plans_.end()) found = plans_.emplace(key, MakePlan(key)).first;
  const Plan& plan = *found->second;
  if (key.bias) {
    const void* const bias = args.bias->data;
    Check(cublasLtMatmulDescSetAttribute(plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)),
          "bias pointer");
  }
  const float one = 1;
  const float beta = args.accumulate ? 1 : 0;
  Check(cublasLtMatmul(handle_, plan.product, &one, args.b.data, plan.first, args.a.data, plan.second, &beta,
                       args.out.data, plan.out, args.out.data, plan.out, &plan.algorithm, workspace_,
                       static_cast<size_t>(kMatMulScratchBytesPerThread), stream_),
        "cublasLtMatmul");
}

}  // namespace muster::kernels::cuda
