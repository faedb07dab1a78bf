// How long each kernel takes on one thread, for the shapes of one micro-batch: kernels_bench [hidden] [sequence]
// [micro_batch] [heads] [vocab].
//
// A table to read before and after a change, not a test: the machine's other work moves it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "tests/worker/kernels/kernel_test_support.h"

namespace muster {
namespace {

struct Shape {
  int64_t hidden = 256, sequence = 256, micro_batch = 4, heads = 8, vocab = 256;
};

// The best of several runs of about 20 ms each, in microseconds a call.
double Microseconds(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  call();
  double best = 1e30;
  int64_t calls = 1;
  for (int run = 0; run < 5; ++run) {
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) call();
    const double microseconds = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    best = std::min(best, microseconds / static_cast<double>(calls));
    calls = std::max<int64_t>(1, static_cast<int64_t>(20000 / best));
  }
  return best;
}

void Report(const char* what, DType type, double microseconds, double flops, double bytes) {
  std::printf("%-28s %-5s %10.1f us", what, NameOf(type), microseconds);
  if (flops > 0) std::printf("  %8.1f GFLOP/s", flops / microseconds / 1e3);
  if (bytes > 0) std::printf("  %8.1f GB/s", bytes / microseconds / 1e3);
  std::printf("\n");
}

void BenchMatMuls(KernelContext& context, DType type, const Shape& shape) {
  const int64_t rows = shape.micro_batch * shape.sequence;
  const struct {
    const char* name;
    int64_t in, out;
  } linears[] = {{"qkv", shape.hidden, 3 * shape.hidden},
                 {"projection", shape.hidden, shape.hidden},
                 {"ffn up", shape.hidden, 4 * shape.hidden},
                 {"ffn down", 4 * shape.hidden, shape.hidden},
                 {"head", shape.hidden, shape.vocab}};
  for (const auto& linear : linears) {
    const auto x = OwnedTensor::Random(type, rows, linear.in, 1);
    const auto weight = OwnedTensor::Random(type, linear.out, linear.in, 2);
    const auto bias = OwnedTensor::Random(type, 1, linear.out, 3);
    const OwnedTensor y(type, rows, linear.out), d_x(type, rows, linear.in);
    const OwnedTensor d_weight(DType::kF32, linear.out, linear.in);
    const Tensor bias_vector = bias.vector();
    const double flops = 2.0 * static_cast<double>(rows * linear.in * linear.out);
    const std::string name = linear.name;
    Report((name + " forward").c_str(), type, Microseconds([&] {
             kernels::MatMul(context, {x.tensor(), weight.tensor(), y.tensor(), false, true, false, &bias_vector});
           }),
           flops, 0);
    Report((name + " d_x").c_str(), type, Microseconds([&] {
             kernels::MatMul(context, {y.tensor(), weight.tensor(), d_x.tensor(), false, false, false, nullptr});
           }),
           flops, 0);
    Report((name + " d_weight").c_str(), type, Microseconds([&] {
             kernels::MatMul(context, {y.tensor(), x.tensor(), d_weight.tensor(), true, false, true, nullptr});
           }),
           flops, 0);
  }
}

void BenchAttention(KernelContext& context, DType type, const Shape& shape) {
  const kernels::AttentionShape attention{shape.micro_batch, shape.sequence, shape.heads, shape.heads,
                                          shape.hidden / shape.heads};
  const int64_t rows = shape.micro_batch * shape.sequence;
  const auto qkv = OwnedTensor::Random(type, rows, 3 * shape.hidden, 1);
  const auto d_out = OwnedTensor::Random(type, rows, shape.hidden, 2);
  const OwnedTensor out(type, rows, shape.hidden), d_qkv(type, rows, 3 * shape.hidden);
  const OwnedTensor lse(DType::kF32, shape.micro_batch * shape.heads, shape.sequence);
  const OwnedTensor workspace(DType::kU8, 1, kernels::AttentionWorkspaceBytes(attention));
  const double flops = 2.0 * static_cast<double>(rows * shape.sequence * shape.hidden);  // causal: half of the square
  Report("attention forward", type, Microseconds([&] {
           kernels::AttentionForward(context, attention, {qkv.tensor()}, out.tensor(), lse.tensor(),
                                     workspace.vector());
         }),
         flops, 0);
  Report("attention backward", type, Microseconds([&] {
           kernels::AttentionBackward(context, attention, d_out.tensor(), {qkv.tensor()}, out.tensor(), lse.tensor(),
                                      d_qkv.tensor(), workspace.vector());
         }),
         2.5 * flops, 0);
}

void BenchDocuments(KernelContext& context, DType type, const Shape& shape) {
  const kernels::AttentionShape attention{shape.micro_batch, shape.sequence, shape.heads, shape.heads,
                                          shape.hidden / shape.heads};
  const int64_t rows = shape.micro_batch * shape.sequence;
  const int64_t document = std::max<int64_t>(1, shape.sequence / 8);
  OwnedTensor starts(DType::kI32, 1, rows);
  for (int64_t row = 0; row < rows; ++row) {
    starts.set(0, row, static_cast<double>(row % shape.sequence / document * document));
  }
  const auto qkv = OwnedTensor::Random(type, rows, 3 * shape.hidden, 1);
  const OwnedTensor out(type, rows, shape.hidden), lse(DType::kF32, shape.micro_batch * shape.heads, shape.sequence);
  const OwnedTensor workspace(DType::kU8, 1, kernels::AttentionWorkspaceBytes(attention));
  Report("attention, 8 documents", type, Microseconds([&] {
           kernels::AttentionForward(context, attention, {qkv.tensor(), starts.vector()}, out.tensor(), lse.tensor(),
                                     workspace.vector());
         }),
         0, 0);
  const OwnedTensor table(DType::kF32, shape.sequence, attention.head_dim);
  kernels::FillRopeTable(context, 1e4, table.tensor());
  Report("rope", type, Microseconds([&] { kernels::Rope(context, table.tensor(), attention, qkv.tensor(), false); }), 0,
         4 * static_cast<double>(rows * shape.hidden * SizeOf(type)));
}

void BenchNorms(KernelContext& context, DType type, const Shape& shape) {
  const int64_t rows = shape.micro_batch * shape.sequence;
  const int64_t h = shape.hidden;
  const double row_bytes = static_cast<double>(rows * h * SizeOf(type));
  const auto x = OwnedTensor::Random(type, rows, h, 1);
  const auto weight = OwnedTensor::Random(type, 1, h, 3);
  const OwnedTensor out(type, rows, h), mean(DType::kF32, 1, rows), rstd(DType::kF32, 1, rows);
  const OwnedTensor d_weight(DType::kF32, 1, h), partials(DType::kF32, kernels::kColumnPartitions, 2 * h);
  const OwnedTensor rms_partials(DType::kF32, kernels::kColumnPartitions, h);
  Report("layer norm forward", type, Microseconds([&] {
           kernels::LayerNormForward(context, x.tensor(), weight.vector(), weight.vector(), 1e-5f, out.tensor(),
                                     mean.vector(), rstd.vector());
         }),
         0, 2 * row_bytes);
  Report("layer norm backward", type, Microseconds([&] {
           kernels::LayerNormBackward(context, x.tensor(), x.tensor(), weight.vector(), mean.vector(), rstd.vector(),
                                      out.tensor(), true, d_weight.vector(), d_weight.vector(), true,
                                      partials.tensor());
         }),
         0, 4 * row_bytes);
  Report("rms norm forward", type, Microseconds([&] {
           kernels::RmsNormForward(context, x.tensor(), weight.vector(), 1e-5f, out.tensor(), rstd.vector());
         }),
         0, 2 * row_bytes);
  Report("rms norm backward", type, Microseconds([&] {
           kernels::RmsNormBackward(context, x.tensor(), x.tensor(), weight.vector(), rstd.vector(), out.tensor(), true,
                                    d_weight.vector(), true, rms_partials.tensor());
         }),
         0, 4 * row_bytes);
}

void BenchElementwise(KernelContext& context, DType type, const Shape& shape) {
  const int64_t rows = shape.micro_batch * shape.sequence;
  const int64_t h = shape.hidden;
  const double row_bytes = static_cast<double>(rows * h * SizeOf(type));
  const auto x = OwnedTensor::Random(type, rows, h, 1);
  const auto wide = OwnedTensor::Random(type, rows, 4 * h, 2);
  const auto bias = OwnedTensor::Random(type, 1, h, 3);
  const auto half = OwnedTensor::Random(type, rows, 2 * h, 4);
  const OwnedTensor out(type, rows, h), wide_out(type, rows, 4 * h), half_out(type, rows, 2 * h);
  const OwnedTensor d_wide(DType::kF32, 1, 4 * h), partials(DType::kF32, kernels::kColumnPartitions, 4 * h);
  const Tensor four_parts(wide.tensor().data, type, {4, rows * h});
  Report("add", type, Microseconds([&] { kernels::Add(context, x.tensor(), x.tensor(), out.tensor()); }), 0,
         3 * row_bytes);
  Report("add with bias", type,
         Microseconds([&] { kernels::Add(context, x.tensor(), x.tensor(), out.tensor(), bias.vector()); }), 0,
         3 * row_bytes);
  Report("gelu forward", type, Microseconds([&] { kernels::GeluForward(context, wide.tensor(), wide_out.tensor()); }),
         0, 8 * row_bytes);
  Report("gelu backward", type,
         Microseconds([&] { kernels::GeluBackward(context, wide.tensor(), wide.tensor(), wide_out.tensor()); }), 0,
         12 * row_bytes);
  Report("swiglu forward (2h)", type,
         Microseconds([&] { kernels::SwiGluForward(context, wide.tensor(), half_out.tensor()); }), 0, 6 * row_bytes);
  Report("swiglu backward (2h)", type,
         Microseconds([&] { kernels::SwiGluBackward(context, half.tensor(), wide.tensor(), wide_out.tensor()); }), 0,
         10 * row_bytes);
  Report("bias gradient (4h)", type,
         Microseconds([&] { kernels::BiasGradient(context, wide.tensor(), d_wide.vector(), true, partials.tensor()); }),
         0, 4 * row_bytes);
  Report("sum of 4 ranks", type, Microseconds([&] { kernels::SumInOrder(context, four_parts, out.vector()); }), 0,
         5 * row_bytes);
}

void BenchVocabulary(KernelContext& context, DType type, const Shape& shape) {
  const int64_t rows = shape.micro_batch * shape.sequence;
  const int64_t h = shape.hidden;
  const double row_bytes = static_cast<double>(rows * h * SizeOf(type));
  const double logit_bytes = static_cast<double>(rows * shape.vocab * SizeOf(type));
  const auto x = OwnedTensor::Random(type, rows, h, 1);
  const auto logits = OwnedTensor::Random(type, rows, shape.vocab, 4);
  OwnedTensor targets(DType::kI32, 1, rows);
  for (int64_t row = 0; row < rows; ++row) targets.set(0, row, static_cast<double>(row * row % shape.vocab));
  const OwnedTensor stats(DType::kF32, rows, kCrossEntropyStatistics);
  const OwnedTensor losses(DType::kF32, 1, rows), lse(DType::kF32, 1, rows), out(type, rows, h);
  const kernels::ClassRange classes{0, shape.vocab};
  Report("cross entropy forward", type, Microseconds([&] {
           kernels::CrossEntropyStatistics(context, logits.tensor(), targets.vector(), classes, stats.tensor());
           kernels::CrossEntropyFromStatistics(context, stats.tensor(), targets.vector(), shape.vocab, losses.vector(),
                                               lse.vector());
         }),
         0, logit_bytes);
  Report("cross entropy backward", type, Microseconds([&] {
           kernels::CrossEntropyBackward(context, logits.tensor(), targets.vector(), classes, lse.vector(), 1e-3f);
         }),
         0, 2 * logit_bytes);
  const auto table = OwnedTensor::Random(type, shape.vocab, h, 5);
  const auto positions = OwnedTensor::Random(type, shape.sequence, h, 6);
  const OwnedTensor d_table(DType::kF32, shape.vocab, h), d_positions(DType::kF32, shape.sequence, h);
  const kernels::EmbeddingShape embedding{shape.sequence, shape.vocab};
  Report("embedding forward", type, Microseconds([&] {
           kernels::EmbeddingForward(context, embedding, targets.vector(), table.tensor(), positions.tensor(),
                                     out.tensor());
         }),
         0, row_bytes);
  Report("embedding backward", type, Microseconds([&] {
           kernels::EmbeddingBackward(context, embedding, targets.vector(), x.tensor(), d_table.tensor(),
                                      d_positions.tensor(), true);
         }),
         0, 2 * row_bytes);
}

void BenchOptimizer(KernelContext& context, DType type, const Shape& shape) {
  const int64_t count = 12 * shape.hidden * shape.hidden;  // a layer's parameters
  const auto gradient = OwnedTensor::Random(DType::kF32, 1, count, 1);
  const OwnedTensor master(DType::kF32, 1, count), first(DType::kF32, 1, count), second(DType::kF32, 1, count);
  const OwnedTensor parameter(type, 1, count);
  kernels::AdamWArgs args;
  args.gradient = gradient.vector();
  args.master = master.vector();
  args.first = first.vector();
  args.second = second.vector();
  args.parameter = parameter.vector();
  args.learning_rate = 1e-4;
  args.beta1 = 0.9;
  args.beta2 = 0.95;
  args.eps = 1e-8;
  Report("adamw (a layer)", type, Microseconds([&] { kernels::AdamW(context, args); }), 0,
         static_cast<double>(count) * 28);
  Report("sum of squares (a layer)", DType::kF32,
         Microseconds([&] { kernels::SumOfSquaresToHost(context, gradient.vector()); }), 0,
         static_cast<double>(count) * 4);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::Shape shape;
  int64_t* const fields[] = {&shape.hidden, &shape.sequence, &shape.micro_batch, &shape.heads, &shape.vocab};
  for (int i = 1; i < argc && i <= 5; ++i) *fields[i - 1] = std::atoll(argv[i]);
  muster::TestContext context;
  for (const muster::DType type : {muster::DType::kF32, muster::DType::kBF16, muster::DType::kF16}) {
    muster::BenchMatMuls(*context, type, shape);
    muster::BenchAttention(*context, type, shape);
    muster::BenchDocuments(*context, type, shape);
    muster::BenchNorms(*context, type, shape);
    muster::BenchElementwise(*context, type, shape);
    muster::BenchVocabulary(*context, type, shape);
    muster::BenchOptimizer(*context, type, shape);
  }
  return 0;
}
