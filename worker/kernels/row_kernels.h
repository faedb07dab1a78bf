// Row kernels: the per-element and per-row work of every operation, written once for all back-ends.
//
// A row kernel is a struct of pointers, strides and scalars whose operator()(row, r) does row r by a policy `row`:
//
// - row.cols(): columns of the whole row.
// - row.load(p): the row at p as a fragment x; x[i] is an f32. On CUDA it is read once, in packs of 16 bytes, into
//   registers; on the processor it stays in the first-level cache and is read again.
// - row.store(p, f): p[i] = f(i), rounded to p's type. f may read the row at p: elements are read before written.
// - row.store_two(p, q, f): p[i], q[i] = f(i), a Two. f may read both rows at i.
// - row.store_sum(p, n, f): p[i] = f(0)(i) + ... + f(n - 1)(i) in that order, rounded once. f may read the row at p.
// - row.sum(f), row.max(f): over the row, in an order that depends on cols() only; max ignores NaN, sum does not.
// - row.add_rows(a, b, p, add, f): p[i] = or += f(a)(i) + ... + f(b - 1)(i) in that order, p f32.
// - row.column(i): the column of i, as an int32_t.
// - row.once(f): f() once for the row, for its scalars.
//
// `i` is opaque. Kernels say kColumnsIndependent when they use neither sum, max nor once: a back-end may then give
// parts of a row to different threads. There must be no other communication between rows or columns.
//
// A new kernel is a struct in rows/ and a line in the list below; nothing else is needed for either back-end. Plain
// C++17.
#pragma once

#include <cstdint>

#include "worker/kernels/rows/attention.h"
#include "worker/kernels/rows/column_sums.h"
#include "worker/kernels/rows/elementwise.h"
#include "worker/kernels/rows/embedding.h"
#include "worker/kernels/rows/layer_norm.h"
#include "worker/kernels/rows/loss.h"
#include "worker/kernels/rows/optimizer.h"
#include "worker/kernels/rows/rms_norm.h"
#include "worker/kernels/rows/rope.h"

namespace muster::kernels {

template <typename... Kernels>
struct KernelList {};

template <typename A, typename B>
struct SameType {
  static constexpr bool value = false;
};
template <typename A>
struct SameType<A, A> {
  static constexpr bool value = true;
};

template <typename... Lists>
struct Concatenated;
template <typename... Kernels>
struct Concatenated<KernelList<Kernels...>> {
  using Type = KernelList<Kernels...>;
};
template <typename... A, typename... B, typename... Rest>
struct Concatenated<KernelList<A...>, KernelList<B...>, Rest...> {
  using Type = typename Concatenated<KernelList<A..., B...>, Rest...>::Type;
};

template <typename T>
using KernelsOfType =
    KernelList<AddRows<T>, GeluForwardRows<T>, GeluBackwardRows<T>, SwiGluForwardRows<T>, SwiGluBackwardRows<T>,
               CastRows<float, T>, CastRows<BF16, T>, CastRows<F16, T>, FinishProductRows<T, T>,
               LayerNormForwardRows<T>, LayerNormBackwardRows<T>, RmsNormForwardRows<T>, RmsNormBackwardRows<T>,
               BiasPartialRows<T>, LayerNormPartialRows<T>, RmsNormPartialRows<T>, SumPartsRows<T>,
               EmbeddingForwardRows<T>, EmbeddingTokenRows<T>, EmbeddingPositionRows<T>, RopeRows<T>,
               CrossEntropyStatisticsRows<T>, CrossEntropyBackwardRows<T>, SoftmaxTileRows<T>, FinishAttentionRows<T>,
               AttentionCorrectionRows<T>, SoftmaxGradientRows<T>, AdamWRows<T>>;

using AllRowKernels =
    Concatenated<KernelsOfType<float>, KernelsOfType<BF16>, KernelsOfType<F16>,
                 KernelList<FinishProductRows<BF16, float>, FinishProductRows<F16, float>, OrderedSumRows,
                            CrossEntropyFromStatisticsRows, BlockSumRows<false>, BlockSumRows<true>, ShrinkRows>>::Type;

template <typename Kernel, typename List>
struct PositionIn;
template <typename Kernel, typename... Kernels>
struct PositionIn<Kernel, KernelList<Kernels...>> {
  static constexpr int Find() {
    constexpr bool kSame[] = {SameType<Kernel, Kernels>::value...};
    int position = 0;
    while (!kSame[position]) ++position;  // not in the list: does not compile
    return position;
  }
};

// The place of a kernel in the list, by which a back-end finds its code.
template <typename Kernel>
inline constexpr int kRowKernelIndex = PositionIn<Kernel, AllRowKernels>::Find();

template <typename... Kernels>
constexpr int CountOf(KernelList<Kernels...>) {
  return static_cast<int>(sizeof...(Kernels));
}
inline constexpr int kRowKernelCount = CountOf(AllRowKernels{});

}  // namespace muster::kernels
