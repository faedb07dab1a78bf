// The operations of kernels.h that are row kernels and nothing else: shapes are checked, pointers gathered, and the
// back-end launches. Compiled into each back-end.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/base/check.h"
#include "worker/kernels/context.h"
#include "worker/kernels/kernels.h"
#include "worker/kernels/launch.h"

namespace muster::kernels {
namespace {

// Calls f with a value of the element type.
template <typename F>
void WithType(DType dtype, F f) {
  switch (dtype) {
    case DType::kF32:
      return f(float{});
    case DType::kBF16:
      return f(BF16{});
    case DType::kF16:
      return f(F16{});
    case DType::kI32:
    case DType::kU8:
      break;
  }
  MUSTER_CHECK(false, "not a floating-point type: ", static_cast<int>(dtype));
}

void CheckShape(const Tensor& tensor, DType dtype, int64_t rows, int64_t cols) {
  MUSTER_CHECK(tensor.dtype == dtype, "element type ", static_cast<int>(tensor.dtype), ", wanted ",
               static_cast<int>(dtype));
  MUSTER_CHECK(tensor.rows() == rows && tensor.cols() == cols, "shape (", tensor.rows(), ", ", tensor.cols(),
               "), wanted (", rows, ", ", cols, ")");
}

void CheckVector(const Tensor& tensor, DType dtype, int64_t count) {
  MUSTER_CHECK(tensor.dtype == dtype, "element type ", static_cast<int>(tensor.dtype), ", wanted ",
               static_cast<int>(dtype));
  MUSTER_CHECK(tensor.elements() == count && IsDense(tensor), tensor.elements(), " elements, wanted ", count,
               " without gaps");
}

bool IsGiven(const Tensor& optional) { return optional.data != nullptr; }

void CheckTable(const Tensor& table, DType dtype, int64_t cols) {
  CheckShape(table, dtype, table.rows(), cols);
  MUSTER_CHECK(IsDense(table));
}

void CheckPositions(const EmbeddingShape& shape, const Tensor& table, int64_t rows) {
  MUSTER_CHECK(shape.sequence_length <= table.rows(), "a sequence of ", shape.sequence_length, " in a table of ",
               table.rows(), " positions");
  MUSTER_CHECK(rows % shape.sequence_length == 0, rows, " rows in sequences of ", shape.sequence_length);
}

void CheckClasses(const Tensor& logits, const ClassRange& classes) {
  MUSTER_CHECK(classes.count >= 0 && classes.count <= logits.cols(), classes.count, " classes in ", logits.cols(),
               " columns");
}

// How elementwise kernels walk tensors of one shape: as a single long row when none has gaps.
struct Walk {
  int64_t rows = 0;
  int64_t cols = 0;
};
template <typename... Tensors>
Walk WalkOf(const Tensor& first, const Tensors&... rest) {
  if (IsDense(first) && (IsDense(rest) && ...)) return Walk{1, first.elements()};
  return Walk{first.rows(), first.cols()};
}

double SumBlocksToHost(KernelContext& context, const Tensor& values, bool squares) {
  CheckVector(values, DType::kF32, values.elements());
  float* const sums = ReductionScratch(context);
  std::array<float, kReductionBlocks> on_host;
  const auto launch = [&](int64_t offset, int64_t blocks, int64_t cols) {
    const float* const start = values.as<float>() + offset;
    if (squares) {
      Launch(context, BlockSumRows<true>{start, sums, kSumBlock}, blocks, cols);
    } else {
      Launch(context, BlockSumRows<false>{start, sums, kSumBlock}, blocks, cols);
    }
    context.device().CopyToHost(on_host.data(), sums, blocks * SizeOf(DType::kF32));
  };
  double total = 0;
  const int64_t whole_blocks = values.elements() / kSumBlock;
  for (int64_t first = 0; first < whole_blocks; first += kReductionBlocks) {
    const int64_t blocks = std::min(kReductionBlocks, whole_blocks - first);
    launch(first * kSumBlock, blocks, kSumBlock);
    for (int64_t i = 0; i < blocks; ++i) total += static_cast<double>(on_host[static_cast<size_t>(i)]);
  }
  if (const int64_t rest = values.elements() % kSumBlock; rest > 0) {
    launch(whole_blocks * kSumBlock, 1, rest);
    total += static_cast<double>(on_host[0]);
  }
  return total;
}

}  // namespace

// ---- embedding ----------------------------------------------------------------------------------------------------

void EmbeddingForward(KernelContext& context, const EmbeddingShape& shape, const Tensor& tokens,
                      const Tensor& token_weight, const Tensor& position_weight, const Tensor& out) {
  const ProfileRange range(context.device(), "embedding");
  CheckVector(tokens, DType::kI32, out.rows());
  CheckTable(token_weight, out.dtype, out.cols());
  if (IsGiven(position_weight)) {
    CheckTable(position_weight, out.dtype, out.cols());
    CheckPositions(shape, position_weight, out.rows());
  }
  WithType(out.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           EmbeddingForwardRows<T>{tokens.as<int32_t>(), token_weight.as<T>(), position_weight.as<T>(), out.as<T>(),
                                   shape.first_token, token_weight.rows(), shape.vocab, shape.sequence_length,
                                   out.row_stride},
           out.rows(), out.cols());
  });
}

void EmbeddingBackward(KernelContext& context, const EmbeddingShape& shape, const Tensor& tokens, const Tensor& d_out,
                       const Tensor& d_token, const Tensor& d_position, bool accumulate) {
  const ProfileRange range(context.device(), "embedding");
  const int64_t rows = d_out.rows();
  const int64_t hidden = d_out.cols();
  const bool has_tokens = IsGiven(d_token);
  const bool has_positions = IsGiven(d_position);
  CheckVector(tokens, DType::kI32, rows);
  if (has_tokens) CheckTable(d_token, DType::kF32, hidden);
  if (has_positions) {
    CheckTable(d_position, DType::kF32, hidden);
    CheckPositions(shape, d_position, rows);
  }
  if (!accumulate) {
    if (has_tokens) FillZero(context, d_token.data, d_token.bytes());
    if (has_positions) FillZero(context, d_position.data, d_position.bytes());
  }
  WithType(d_out.dtype, [&](auto type) {
    using T = decltype(type);
    if (has_tokens) {
      Launch(context,
             EmbeddingTokenRows<T>{tokens.as<int32_t>(), d_out.as<T>(), d_token.as<float>(), rows, shape.first_token,
                                   d_token.rows(), d_out.row_stride},
             1, hidden);
    }
    if (!has_positions) return;
    const int64_t sequence = shape.sequence_length;
    Launch(context,
           EmbeddingPositionRows<T>{d_out.as<T>(), d_position.as<float>(), rows / sequence, sequence, d_out.row_stride},
           sequence, hidden);
  });
}

// ---- norms --------------------------------------------------------------------------------------------------------

void LayerNormForward(KernelContext& context, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                      const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  const ProfileRange range(context.device(), "layer_norm");
  CheckShape(out, x.dtype, x.rows(), x.cols());
  CheckVector(weight, x.dtype, x.cols());
  CheckVector(bias, x.dtype, x.cols());
  CheckVector(mean, DType::kF32, x.rows());
  CheckVector(rstd, DType::kF32, x.rows());
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           LayerNormForwardRows<T>{x.as<T>(), weight.as<T>(), bias.as<T>(), out.as<T>(), mean.as<float>(),
                                   rstd.as<float>(), x.row_stride, out.row_stride, eps},
           x.rows(), x.cols());
  });
}

void LayerNormBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& weight,
                       const Tensor& mean, const Tensor& rstd, const Tensor& d_x, bool add_to_d_x,
                       const Tensor& d_weight, const Tensor& d_bias, bool accumulate, const Tensor& partials) {
  const ProfileRange range(context.device(), "layer_norm");
  const int64_t rows = x.rows();
  const int64_t hidden = x.cols();
  CheckShape(d_out, x.dtype, rows, hidden);
  CheckShape(d_x, x.dtype, rows, hidden);
  CheckVector(weight, x.dtype, hidden);
  CheckVector(mean, DType::kF32, rows);
  CheckVector(rstd, DType::kF32, rows);
  if (IsGiven(d_weight)) CheckVector(d_weight, DType::kF32, hidden);
  if (IsGiven(d_bias)) CheckVector(d_bias, DType::kF32, hidden);
  CheckVector(partials, DType::kF32, kColumnPartitions * 2 * hidden);
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    // The weights' gradients first: d_x may be d_out.
    Launch(context,
           LayerNormPartialRows<T>{d_out.as<T>(), x.as<T>(), mean.as<float>(), rstd.as<float>(), partials.as<float>(),
                                   d_out.row_stride, x.row_stride, rows, kColumnPartitions},
           kColumnPartitions, hidden);
    Launch(context,
           LayerNormBackwardRows<T>{d_out.as<T>(), x.as<T>(), weight.as<T>(), mean.as<float>(), rstd.as<float>(),
                                    d_x.as<T>(), d_out.row_stride, x.row_stride, d_x.row_stride, add_to_d_x},
           rows, hidden);
  });
  const float* const sums = partials.as<float>();
  const auto sum = [&](const float* first, const Tensor& d_vector) {
    if (!IsGiven(d_vector)) return;
    Launch(context, OrderedSumRows{first, d_vector.as<float>(), 2 * hidden, kColumnPartitions, accumulate}, 1, hidden);
  };
  sum(sums, d_weight);
  sum(sums + hidden, d_bias);
}

void RmsNormForward(KernelContext& context, const Tensor& x, const Tensor& weight, float eps, const Tensor& out,
                    const Tensor& rstd) {
  const ProfileRange range(context.device(), "rms_norm");
  CheckShape(out, x.dtype, x.rows(), x.cols());
  CheckVector(weight, x.dtype, x.cols());
  CheckVector(rstd, DType::kF32, x.rows());
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           RmsNormForwardRows<T>{x.as<T>(), weight.as<T>(), out.as<T>(), rstd.as<float>(), x.row_stride, out.row_stride,
                                 eps},
           x.rows(), x.cols());
  });
}

void RmsNormBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& weight,
                     const Tensor& rstd, const Tensor& d_x, bool add_to_d_x, const Tensor& d_weight, bool accumulate,
                     const Tensor& partials) {
  const ProfileRange range(context.device(), "rms_norm");
  const int64_t rows = x.rows();
  const int64_t hidden = x.cols();
  CheckShape(d_out, x.dtype, rows, hidden);
  CheckShape(d_x, x.dtype, rows, hidden);
  CheckVector(weight, x.dtype, hidden);
  CheckVector(rstd, DType::kF32, rows);
  if (IsGiven(d_weight)) CheckVector(d_weight, DType::kF32, hidden);
  CheckVector(partials, DType::kF32, kColumnPartitions * hidden);
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    // The weight's gradient first: d_x may be d_out.
    Launch(context,
           RmsNormPartialRows<T>{d_out.as<T>(), x.as<T>(), rstd.as<float>(), partials.as<float>(), d_out.row_stride,
                                 x.row_stride, rows, kColumnPartitions},
           kColumnPartitions, hidden);
    Launch(context,
           RmsNormBackwardRows<T>{d_out.as<T>(), x.as<T>(), weight.as<T>(), rstd.as<float>(), d_x.as<T>(),
                                  d_out.row_stride, x.row_stride, d_x.row_stride, add_to_d_x},
           rows, hidden);
  });
  if (!IsGiven(d_weight)) return;
  Launch(context, OrderedSumRows{partials.as<float>(), d_weight.as<float>(), hidden, kColumnPartitions, accumulate}, 1,
         hidden);
}

// ---- elementwise --------------------------------------------------------------------------------------------------

void Add(KernelContext& context, const Tensor& x, const Tensor& residual, const Tensor& out, const Tensor& bias) {
  const ProfileRange range(context.device(), "add");
  CheckShape(residual, x.dtype, x.rows(), x.cols());
  CheckShape(out, x.dtype, x.rows(), x.cols());
  Walk walk = WalkOf(x, residual, out);
  if (IsGiven(bias)) {
    CheckVector(bias, x.dtype, x.cols());
    walk = {x.rows(), x.cols()};
  }
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           AddRows<T>{x.as<T>(), bias.as<T>(), residual.as<T>(), out.as<T>(), x.row_stride, residual.row_stride,
                      out.row_stride},
           walk.rows, walk.cols);
  });
}

void GeluForward(KernelContext& context, const Tensor& x, const Tensor& out) {
  const ProfileRange range(context.device(), "gelu");
  CheckShape(out, x.dtype, x.rows(), x.cols());
  const Walk walk = WalkOf(x, out);
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context, GeluForwardRows<T>{x.as<T>(), out.as<T>(), x.row_stride, out.row_stride}, walk.rows, walk.cols);
  });
}

void GeluBackward(KernelContext& context, const Tensor& d_out, const Tensor& x, const Tensor& d_x) {
  const ProfileRange range(context.device(), "gelu");
  CheckShape(d_out, x.dtype, x.rows(), x.cols());
  CheckShape(d_x, x.dtype, x.rows(), x.cols());
  const Walk walk = WalkOf(d_out, x, d_x);
  WithType(x.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           GeluBackwardRows<T>{d_out.as<T>(), x.as<T>(), d_x.as<T>(), d_out.row_stride, x.row_stride, d_x.row_stride},
           walk.rows, walk.cols);
  });
}

void SwiGluForward(KernelContext& context, const Tensor& gate_up, const Tensor& out) {
  const ProfileRange range(context.device(), "swiglu");
  const int64_t cols = out.cols();
  CheckShape(gate_up, out.dtype, out.rows(), 2 * cols);
  WithType(out.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(
        context,
        SwiGluForwardRows<T>{gate_up.as<T>(), gate_up.as<T>() + cols, out.as<T>(), gate_up.row_stride, out.row_stride},
        out.rows(), cols);
  });
}

void SwiGluBackward(KernelContext& context, const Tensor& d_out, const Tensor& gate_up, const Tensor& d_gate_up) {
  const ProfileRange range(context.device(), "swiglu");
  const int64_t cols = d_out.cols();
  CheckShape(gate_up, d_out.dtype, d_out.rows(), 2 * cols);
  CheckShape(d_gate_up, d_out.dtype, d_out.rows(), 2 * cols);
  MUSTER_CHECK(d_gate_up.data != d_out.data && d_gate_up.data != gate_up.data);
  WithType(d_out.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           SwiGluBackwardRows<T>{d_out.as<T>(), gate_up.as<T>(), gate_up.as<T>() + cols, d_gate_up.as<T>(),
                                 d_gate_up.as<T>() + cols, d_out.row_stride, gate_up.row_stride, d_gate_up.row_stride},
           d_out.rows(), cols);
  });
}

void BiasGradient(KernelContext& context, const Tensor& d_out, const Tensor& d_bias, bool accumulate,
                  const Tensor& partials) {
  const ProfileRange range(context.device(), "bias_gradient");
  const int64_t cols = d_out.cols();
  CheckVector(d_bias, DType::kF32, cols);
  CheckVector(partials, DType::kF32, kColumnPartitions * cols);
  WithType(d_out.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           BiasPartialRows<T>{d_out.as<T>(), partials.as<float>(), d_out.row_stride, cols, d_out.rows(),
                              kColumnPartitions},
           kColumnPartitions, cols);
  });
  Launch(context, OrderedSumRows{partials.as<float>(), d_bias.as<float>(), cols, kColumnPartitions, accumulate}, 1,
         cols);
}

void Zero(KernelContext& context, const Tensor& x) {
  MUSTER_CHECK(IsDense(x));
  FillZero(context, x.data, x.bytes());
}

void Cast(KernelContext& context, const Tensor& from, const Tensor& to) {
  const ProfileRange range(context.device(), "cast");
  const bool flat = IsDense(from) && IsDense(to);
  MUSTER_CHECK(from.elements() == to.elements() && (flat || from.cols() == to.cols()), from.elements(), " elements to ",
               to.elements());
  WithType(from.dtype, [&](auto from_type) {
    WithType(to.dtype, [&](auto to_type) {
      using From = decltype(from_type);
      using To = decltype(to_type);
      Launch(context, CastRows<From, To>{from.as<From>(), to.as<To>(), from.row_stride, to.row_stride},
             flat ? 1 : from.rows(), flat ? from.elements() : from.cols());
    });
  });
}

void Copy(KernelContext& context, const Tensor& from, const Tensor& to) {
  const ProfileRange range(context.device(), "copy");
  CheckShape(to, from.dtype, from.rows(), from.cols());
  const Walk walk = WalkOf(from, to);
  const int64_t element = SizeOf(from.dtype);
  CopyRows(context, {to.data, to.row_stride * element}, {from.data, from.row_stride * element}, walk.rows,
           walk.cols * element);
}

void SumInOrder(KernelContext& context, const Tensor& parts, const Tensor& out) {
  const ProfileRange range(context.device(), "sum_in_order");
  const int64_t count = parts.rows();
  CheckShape(parts, out.dtype, count, out.elements());
  CheckVector(out, out.dtype, out.elements());
  MUSTER_CHECK(count >= 1);
  WithType(out.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context, SumPartsRows<T>{parts.as<T>(), out.as<T>(), parts.row_stride, count}, 1, out.elements());
  });
}

// ---- rotary position embedding ------------------------------------------------------------------------------------

void FillRopeTable(KernelContext& context, double base, const Tensor& table) {
  const int64_t sequence = table.rows();
  const int64_t head_dim = table.cols();
  const int64_t half = head_dim / 2;
  CheckShape(table, DType::kF32, sequence, 2 * half);
  MUSTER_CHECK(IsDense(table));
  std::vector<float> positions;  // a few at a time: memory beyond the arena is for small things
  constexpr int64_t kFloatsAtOnce = 16384;
  for (int64_t first = 0; first < sequence; first += std::max<int64_t>(1, kFloatsAtOnce / head_dim)) {
    const int64_t last = std::min(sequence, first + std::max<int64_t>(1, kFloatsAtOnce / head_dim));
    positions.clear();
    for (int64_t position = first; position < last; ++position) {
      const auto angle = [&](int64_t i) {
        return static_cast<double>(position) *
               std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
      };
      for (int64_t i = 0; i < half; ++i) positions.push_back(static_cast<float>(std::cos(angle(i))));
      for (int64_t i = 0; i < half; ++i) positions.push_back(static_cast<float>(std::sin(angle(i))));
    }
    context.device().CopyToDevice(table.as<float>() + first * head_dim, positions.data(),
                                  (last - first) * head_dim * SizeOf(DType::kF32));
  }
}

void Rope(KernelContext& context, const Tensor& table, const AttentionShape& shape, const Tensor& qkv, bool inverse) {
  const ProfileRange range(context.device(), "rope");
  const int64_t rows = shape.batch * shape.sequence;
  const int64_t turned = shape.heads + shape.kv_heads;
  const int64_t half = shape.head_dim / 2;
  CheckShape(qkv, qkv.dtype, rows, (turned + shape.kv_heads) * shape.head_dim);
  CheckShape(table, DType::kF32, table.rows(), 2 * half);
  MUSTER_CHECK(IsDense(table) && table.rows() >= shape.sequence && shape.head_dim == 2 * half);
  WithType(qkv.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           RopeRows<T>{table.as<float>(), qkv.as<T>(), turned, shape.sequence, half, qkv.row_stride,
                       inverse ? -1.0f : 1.0f},
           rows * turned, half);
  });
}

// ---- loss ---------------------------------------------------------------------------------------------------------

void CrossEntropyForward(KernelContext& context, const Tensor& logits, const Tensor& targets, const Tensor& losses,
                         const Tensor& lse) {
  const ProfileRange range(context.device(), "cross_entropy");
  CheckVector(targets, DType::kI32, logits.rows());
  CheckVector(losses, DType::kF32, logits.rows());
  CheckVector(lse, DType::kF32, logits.rows());
  WithType(logits.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           CrossEntropyForwardRows<T>{logits.as<T>(), targets.as<int32_t>(), losses.as<float>(), lse.as<float>(),
                                      logits.row_stride, kIgnoredTarget},
           logits.rows(), logits.cols());
  });
}

void CrossEntropyStatistics(KernelContext& context, const Tensor& logits, const Tensor& targets,
                            const ClassRange& classes, const Tensor& stats) {
  const ProfileRange range(context.device(), "cross_entropy");
  CheckVector(targets, DType::kI32, logits.rows());
  CheckVector(stats, DType::kF32, logits.rows() * kCrossEntropyStatistics);
  CheckClasses(logits, classes);
  WithType(logits.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           CrossEntropyStatisticsRows<T>{logits.as<T>(), targets.as<int32_t>(), stats.as<float>(), logits.row_stride,
                                         static_cast<int32_t>(classes.first), classes.count == 0},
           logits.rows(), std::max<int64_t>(1, classes.count));
  });
}

void CrossEntropyFromStatistics(KernelContext& context, const Tensor& stats, const Tensor& targets, int64_t vocab,
                                const Tensor& losses, const Tensor& lse) {
  const ProfileRange range(context.device(), "cross_entropy");
  const int64_t rows = targets.elements();
  const int64_t part = rows * kCrossEntropyStatistics;
  CheckVector(targets, DType::kI32, rows);
  CheckVector(losses, DType::kF32, rows);
  CheckVector(lse, DType::kF32, rows);
  CheckVector(stats, DType::kF32, stats.elements());
  MUSTER_CHECK(stats.elements() >= part && stats.elements() % part == 0, stats.elements(), " statistics of ", rows,
               " rows");
  Launch(context,
         CrossEntropyFromStatisticsRows{stats.as<float>(), targets.as<int32_t>(), losses.as<float>(), lse.as<float>(),
                                        stats.elements() / part, part, static_cast<int32_t>(vocab), kIgnoredTarget},
         rows, 1);
}

void CrossEntropyBackward(KernelContext& context, const Tensor& logits, const Tensor& targets,
                          const ClassRange& classes, const Tensor& lse, float scale) {
  const ProfileRange range(context.device(), "cross_entropy");
  CheckClasses(logits, classes);
  CheckVector(targets, DType::kI32, logits.rows());
  CheckVector(lse, DType::kF32, logits.rows());
  WithType(logits.dtype, [&](auto type) {
    using T = decltype(type);
    Launch(context,
           CrossEntropyBackwardRows<T>{logits.as<T>(), targets.as<int32_t>(), lse.as<float>(), logits.row_stride, scale,
                                       static_cast<int32_t>(classes.first), static_cast<int32_t>(classes.count),
                                       kIgnoredTarget},
           logits.rows(), logits.cols());
  });
}

double SumToHost(KernelContext& context, const Tensor& values) { return SumBlocksToHost(context, values, false); }

// ---- optimizer ----------------------------------------------------------------------------------------------------

double SumOfSquaresToHost(KernelContext& context, const Tensor& gradient) {
  const ProfileRange range(context.device(), "gradient_norm");
  return SumBlocksToHost(context, gradient, true);
}

void AdamW(KernelContext& context, const AdamWArgs& args) {
  const ProfileRange range(context.device(), "adamw");
  const int64_t count = args.gradient.elements();
  CheckVector(args.gradient, DType::kF32, count);
  CheckVector(args.master, DType::kF32, count);
  CheckVector(args.first, DType::kF32, count);
  CheckVector(args.second, DType::kF32, count);
  CheckVector(args.parameter, args.parameter.dtype, count);
  MUSTER_CHECK(args.step >= 1);
  const double step = static_cast<double>(args.step);
  WithType(args.parameter.dtype, [&](auto type) {
    using T = decltype(type);
    AdamWRows<T> rows{};
    rows.gradient = args.gradient.as<float>();
    rows.master = args.master.as<float>();
    rows.first = args.first.as<float>();
    rows.second = args.second.as<float>();
    rows.parameter = args.parameter.as<T>();
    rows.gradient_scale = args.gradient_scale;
    rows.beta2 = static_cast<float>(args.beta2);
    rows.rest1 = static_cast<float>(1 - args.beta1);
    rows.rest2 = static_cast<float>(1 - args.beta2);
    rows.eps = static_cast<float>(args.eps);
    rows.keep = static_cast<float>(1 - args.learning_rate * args.weight_decay);
    rows.step_size = static_cast<float>(args.learning_rate / (1 - std::pow(args.beta1, step)));
    rows.second_root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(args.beta2, step)));
    Launch(context, rows, 1, count);
  });
}

}  // namespace muster::kernels
