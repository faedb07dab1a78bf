#include "worker/kernels/cpu/matmul_onednn.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "common/base/check.h"

namespace muster::kernels {
namespace {

dnnl::memory::data_type DnnlType(DType type) {
  switch (type) {
    case DType::kF32:
      return dnnl::memory::data_type::f32;
    case DType::kBF16:
      return dnnl::memory::data_type::bf16;
    case DType::kF16:
      return dnnl::memory::data_type::f16;
    case DType::kI32:
    case DType::kU8:
      break;
  }
  MUSTER_CHECK(false, "no matmul of element type ", static_cast<int>(type));
  return dnnl::memory::data_type::undef;
}

// A matrix of (rows, cols) of which the memory may hold the transpose.
dnnl::memory::desc Describe(DType type, int64_t rows, int64_t cols, int64_t stride, bool transposed) {
  const dnnl::memory::dims strides = transposed ? dnnl::memory::dims{1, stride} : dnnl::memory::dims{stride, 1};
  return dnnl::memory::desc({rows, cols}, DnnlType(type), strides);
}

}  // namespace

bool OneDnnMatMul::Key::operator==(const Key& other) const {
  const auto tie = [](const Key& key) {
    return std::tie(key.m, key.n, key.k, key.a_stride, key.b_stride, key.out_stride, key.type, key.out_type,
                    key.transpose_a, key.transpose_b, key.accumulate, key.bias);
  };
  return tie(*this) == tie(other);
}

// A primitive with memory objects whose pointers are set for each run. The C interface runs it, as the C++ one builds
// two containers per call.
struct OneDnnMatMul::Primitive {
  dnnl::matmul primitive;
  dnnl::memory a, b, out, bias, scratch;
};

OneDnnMatMul::OneDnnMatMul(const RowTable& rows, int threads, void* scratch, void* widening)
    : rows_(rows),
      threads_(threads),
      scratch_(scratch),
      widening_(static_cast<float*>(widening)),
      engine_(dnnl::engine::kind::cpu, 0),
      stream_(engine_) {}

OneDnnMatMul::~OneDnnMatMul() = default;

std::unique_ptr<OneDnnMatMul::Primitive> OneDnnMatMul::Make(const Key& key) const {
  const dnnl::memory::desc a = Describe(key.type, key.m, key.k, key.a_stride, key.transpose_a);
  const dnnl::memory::desc b = Describe(key.type, key.k, key.n, key.b_stride, key.transpose_b);
  const dnnl::memory::desc out = Describe(key.out_type, key.m, key.n, key.out_stride, false);
  const dnnl::memory::desc bias = Describe(key.type, 1, key.n, key.n, false);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (key.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::desc description = key.bias ? dnnl::matmul::desc(a, b, bias, out) : dnnl::matmul::desc(a, b, out);
  const dnnl::matmul::primitive_desc chosen(description, attributes, engine_, /*allow_empty=*/true);
  if (!chosen) return nullptr;
  // The reference implementation is a hundred times slower than widening.
  if (key.type != DType::kF32 && std::strncmp(chosen.impl_info_str(), "ref", 3) == 0) return nullptr;
  const int64_t scratch_bytes = static_cast<int64_t>(chosen.scratchpad_desc().get_size());
  if (scratch_bytes > kMatMulScratchBytesPerThread * threads_) return nullptr;
  auto primitive = std::make_unique<Primitive>();
  primitive->primitive = dnnl::matmul(chosen);
  primitive->a = dnnl::memory(a, engine_, nullptr);
  primitive->b = dnnl::memory(b, engine_, nullptr);
  primitive->out = dnnl::memory(out, engine_, nullptr);
  if (key.bias) primitive->bias = dnnl::memory(bias, engine_, nullptr);
  primitive->scratch = dnnl::memory(chosen.scratchpad_desc(), engine_, scratch_);
  return primitive;
}

OneDnnMatMul::Key OneDnnMatMul::KeyOf(const MatMulArgs& args) {
  Key key{};
  key.m = args.out.rows();
  key.n = args.out.cols();
  key.k = args.transpose_a ? args.a.rows() : args.a.cols();
  key.a_stride = args.a.row_stride;
  key.b_stride = args.b.row_stride;
  key.out_stride = args.out.row_stride;
  key.type = args.a.dtype;
  key.out_type = args.out.dtype;
  key.transpose_a = args.transpose_a;
  key.transpose_b = args.transpose_b;
  key.accumulate = args.accumulate;
  key.bias = args.bias != nullptr;
  return key;
}

OneDnnMatMul::Primitive* OneDnnMatMul::Find(const Key& key) {
  const auto found = primitives_.find(key);
  if (found != primitives_.end()) return found->second.get();
  // oneDNN asks OpenMP how many threads to take, which is a setting of the calling thread.
  if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
  return primitives_.emplace(key, Make(key)).first->second.get();
}

bool OneDnnMatMul::IsNative(const MatMulArgs& args) { return Find(KeyOf(args)) != nullptr; }

void OneDnnMatMul::Run(const MatMulArgs& args) {
  if (!RunNative(args)) RunWidened(args);
}

bool OneDnnMatMul::RunNative(const MatMulArgs& args) {
  Primitive* const primitive = Find(KeyOf(args));
  if (primitive == nullptr) return false;
  if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
  primitive->a.set_data_handle(args.a.data);
  primitive->b.set_data_handle(args.b.data);
  primitive->out.set_data_handle(args.out.data);
  std::array<dnnl_exec_arg_t, 5> arguments = {{{DNNL_ARG_SRC, primitive->a.get()},
                                               {DNNL_ARG_WEIGHTS, primitive->b.get()},
                                               {DNNL_ARG_DST, primitive->out.get()},
                                               {DNNL_ARG_SCRATCHPAD, primitive->scratch.get()},
                                               {}}};
  int count = 4;
  if (args.bias != nullptr) {
    primitive->bias.set_data_handle(args.bias->data);
    arguments[static_cast<size_t>(count++)] = {DNNL_ARG_BIAS, primitive->bias.get()};
  }
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive->primitive.get(), stream_.get(), count, arguments.data());
  MUSTER_CHECK(status == dnnl_success, "oneDNN matmul failed: ", static_cast<int>(status));
  return true;
}

// ---- widening -----------------------------------------------------------------------------------------------------

// Rows [row, row + rows) and columns [col, col + cols) of an operand, as f32: itself where it is f32, else a copy in
// `panel`. The memory keeps its order, so a transposed operand stays transposed.
Tensor OneDnnMatMul::Widen(const Tensor& operand, bool transpose, int64_t row, int64_t rows, int64_t col, int64_t cols,
                           float* panel) const {
  if (transpose) {
    std::swap(row, col);
    std::swap(rows, cols);
  }
  Tensor part = operand;
  part.data = static_cast<char*>(operand.data) + (row * operand.row_stride + col) * SizeOf(operand.dtype);
  part.dims[0] = rows;
  part.dims[1] = cols;
  if (operand.dtype == DType::kF32) return part;
  const RowBox box{0, rows, cols, 0, cols};
  if (operand.dtype == DType::kBF16) {
    RunRows(rows_, CastRows<BF16, float>{part.as<BF16>(), panel, part.row_stride, cols}, box);
  } else {
    RunRows(rows_, CastRows<F16, float>{part.as<F16>(), panel, part.row_stride, cols}, box);
  }
  return Tensor(panel, DType::kF32, {rows, cols});
}

// out [+]= product + bias, rounded to out's type.
void OneDnnMatMul::Finish(DType compute, const Tensor& product, const Tensor* bias, const Tensor& out,
                          bool accumulate) const {
  const RowBox box{0, out.rows(), out.cols(), 0, out.cols()};
  const auto run = [&](auto compute, auto type) {
    using Compute = decltype(compute);
    using T = decltype(type);
    const Compute* const biases = bias == nullptr ? nullptr : bias->as<Compute>();
    RunRows(rows_,
            FinishProductRows<Compute, T>{product.as<float>(), biases, out.as<T>(), product.row_stride, out.row_stride,
                                          accumulate},
            box);
  };
  const bool to_f32 = out.dtype == DType::kF32;
  switch (compute) {
    case DType::kF32:
      return run(float{}, float{});
    case DType::kBF16:
      return to_f32 ? run(BF16{}, float{}) : run(BF16{}, BF16{});
    default:
      return to_f32 ? run(F16{}, float{}) : run(F16{}, F16{});
  }
}

// Panels of kWidenRows x kWidenDepth, the product of each block of out summed over the depth in f32.
void OneDnnMatMul::RunWidened(const MatMulArgs& args) {
  const int64_t all_rows = args.out.rows();
  const int64_t all_cols = args.out.cols();
  const int64_t all_depths = args.transpose_a ? args.a.rows() : args.a.cols();
  float* const a_panel = widening_;
  float* const b_panel = a_panel + kWidenRows * kWidenDepth;
  float* const product_panel = b_panel + kWidenRows * kWidenDepth;
  for (int64_t col = 0; col < all_cols; col += kWidenRows) {
    const int64_t cols = std::min(kWidenRows, all_cols - col);
    for (int64_t row = 0; row < all_rows; row += kWidenRows) {
      const int64_t rows = std::min(kWidenRows, all_rows - row);
      const Tensor product(product_panel, DType::kF32, {rows, cols});
      for (int64_t depth = 0; depth < all_depths; depth += kWidenDepth) {
        const int64_t depths = std::min(kWidenDepth, all_depths - depth);
        MatMulArgs part;
        part.a = Widen(args.a, args.transpose_a, row, rows, depth, depths, a_panel);
        part.b = Widen(args.b, args.transpose_b, depth, depths, col, cols, b_panel);
        part.out = product;
        part.transpose_a = args.transpose_a;
        part.transpose_b = args.transpose_b;
        part.accumulate = depth > 0;
        MUSTER_CHECK(RunNative(part), "oneDNN has no f32 matmul of (", rows, ", ", depths, ") x (", depths, ", ", cols,
                     ")");
      }
      Tensor out = args.out;
      out.data = static_cast<char*>(args.out.data) + (row * args.out.row_stride + col) * SizeOf(args.out.dtype);
      out.dims[0] = rows;
      out.dims[1] = cols;
      Tensor bias;
      if (args.bias != nullptr) bias = args.bias->columns(col, cols);
      Finish(args.a.dtype, product, args.bias == nullptr ? nullptr : &bias, out, args.accumulate);
    }
  }
}

}  // namespace muster::kernels
