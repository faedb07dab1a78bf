// CUDA's policies for row kernels (worker/kernels/row_kernels.h): a thread block does a row, or a window of one.
//
// Included by launchers.cu only. The order of a sum depends on the columns alone, through the policy that is chosen for
// them.
#pragma once

#include <cstdint>
#include <cub/block/block_reduce.cuh>

#include "worker/kernels/formulas.h"

namespace muster::kernels::cuda {

inline constexpr int kPack = 8;  // elements: 16 bytes of bf16, twice 16 of f32

// What the two policies share: sums over the block and the scalars of a row.
template <int kBlockThreads>
class BlockReductions {
 public:
  static constexpr int kThreads = kBlockThreads;
  struct Shared {
    typename cub::BlockReduce<float, kBlockThreads>::TempStorage reduce;
    float result;
  };

  __device__ explicit BlockReductions(Shared& shared) : shared_(shared) {}

  template <typename Combine>
  __device__ float Reduce(float value, Combine combine) const {
    const float total = cub::BlockReduce<float, kBlockThreads>(shared_.reduce).Reduce(value, combine);
    if (threadIdx.x == 0) shared_.result = total;
    __syncthreads();
    const float result = shared_.result;
    __syncthreads();  // before the next reduction overwrites it
    return result;
  }

  template <typename F>
  __device__ void once(F f) const {
    if (threadIdx.x == 0) f();
  }

 private:
  Shared& shared_;
};

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
  __device__ float operator()(float a, float b) const { return Maximum(a, b); }
};

// A row, or one window of kColumns of it, in registers: each thread holds kPacks packs of kPack neighbouring elements.
template <int kBlockThreads, int kPacks>
class PackedRow : public BlockReductions<kBlockThreads> {
 public:
  using Base = BlockReductions<kBlockThreads>;
  static constexpr int kSlots = kPacks * kPack;
  static constexpr int kColumns = kBlockThreads * kSlots;

  struct Index {
    int slot;
  };
  struct Fragment {
    float slots[kSlots];
    __device__ float operator[](Index i) const { return slots[i.slot]; }
  };

  __device__ PackedRow(typename Base::Shared& shared, int64_t cols, int64_t window)
      : Base(shared), cols_(cols), first_(window * kColumns) {}

  __device__ int64_t cols() const { return cols_; }
  __device__ int32_t column(Index i) const {
    return static_cast<int32_t>(FirstOfPack(i.slot / kPack)) + i.slot % kPack;
  }

  template <typename T>
  __device__ Fragment load(const T* row) const {
    Fragment fragment;
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) LoadPack(row, pack, fragment.slots + pack * kPack);
    return fragment;
  }

  template <typename T, typename F>
  __device__ void store(T* row, F value) const {
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      alignas(16) T elements[kPack];
#pragma unroll
      for (int j = 0; j < kPack; ++j) elements[j] = FromFloat(value(Index{pack * kPack + j}), T{});
      const int64_t first = FirstOfPack(pack);
      if (IsWholePack(row, first)) {
#pragma unroll
        for (int part = 0; part < static_cast<int>(sizeof(elements) / 16); ++part) {
          reinterpret_cast<uint4*>(row + first)[part] = reinterpret_cast<const uint4*>(elements)[part];
        }
      } else {
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          if (first + j < cols_) row[first + j] = elements[j];
        }
      }
    }
  }

  template <typename T, typename F>
  __device__ void store_two(T* first_row, T* second_row, F values) const {
    Fragment firsts, seconds;
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      const Two both = values(Index{slot});
      firsts.slots[slot] = both.first;
      seconds.slots[slot] = both.second;
    }
    store(first_row, [&](Index i) { return firsts[i]; });
    store(second_row, [&](Index i) { return seconds[i]; });
  }

  template <typename T, typename F>
  __device__ void store_sum(T* row, int64_t terms, F values_of) const {
    Fragment sums = {};
    for (int64_t term = 0; term < terms; ++term) {
      const auto value = values_of(term);
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const float addend = value(Index{slot});
        sums.slots[slot] = term == 0 ? addend : sums.slots[slot] + addend;  // 0 + -0 would be 0
      }
    }
    store(row, [&](Index i) { return sums[i]; });
  }

  template <typename F>
  __device__ float sum(F value) const {
    float own = 0;
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) own += IsInside(slot) ? value(Index{slot}) : 0.0f;
    return this->Reduce(own, Sum{});
  }

  template <typename F>
  __device__ float max(F value) const {
    float own = FloatOfBits(0xff800000u);  // -infinity
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) own = IsInside(slot) ? Maximum(value(Index{slot}), own) : own;
    return this->Reduce(own, Max{});
  }

  template <typename F>
  __device__ void add_rows(int64_t first_row, int64_t last_row, float* row, bool add, F values_of) const {
    Fragment sums = {};
    if (add) sums = load(row);
    for (int64_t r = first_row; r < last_row; ++r) {
      const auto value = values_of(r);
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) sums.slots[slot] += value(Index{slot});
    }
    store(row, [&](Index i) { return sums[i]; });
  }

 private:
  __device__ int64_t FirstOfPack(int pack) const {
    return first_ + (static_cast<int64_t>(pack) * kBlockThreads + threadIdx.x) * kPack;
  }
  __device__ bool IsInside(int slot) const { return FirstOfPack(slot / kPack) + slot % kPack < cols_; }
  template <typename T>
  __device__ bool IsWholePack(const T* row, int64_t first) const {
    return first + kPack <= cols_ && reinterpret_cast<uintptr_t>(row + first) % 16 == 0;
  }

  template <typename T>
  __device__ void LoadPack(const T* row, int pack, float* slots) const {
    const int64_t first = FirstOfPack(pack);
    alignas(16) T elements[kPack] = {};
    if (IsWholePack(row, first)) {
#pragma unroll
      for (int part = 0; part < static_cast<int>(sizeof(elements) / 16); ++part) {
        reinterpret_cast<uint4*>(elements)[part] = reinterpret_cast<const uint4*>(row + first)[part];
      }
    } else {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        if (first + j < cols_) elements[j] = row[first + j];
      }
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) slots[j] = ToFloat(elements[j]);
  }

  const int64_t cols_;
  const int64_t first_;
};

// A row too long for registers, such as the logits of a large vocabulary: read again for every use.
template <int kBlockThreads>
class StreamedRow : public BlockReductions<kBlockThreads> {
 public:
  using Base = BlockReductions<kBlockThreads>;

  template <typename T>
  struct Fragment {
    const T* elements;
    __device__ float operator[](int32_t i) const { return ToFloat(elements[i]); }
  };

  __device__ StreamedRow(typename Base::Shared& shared, int64_t cols, int64_t) : Base(shared), cols_(cols) {}

  __device__ int64_t cols() const { return cols_; }
  __device__ int32_t column(int32_t i) const { return i; }

  template <typename T>
  __device__ Fragment<T> load(const T* row) const {
    return Fragment<T>{row};
  }

  template <typename T, typename F>
  __device__ void store(T* row, F value) const {
    for (int32_t i = threadIdx.x; i < cols_; i += kBlockThreads) row[i] = FromFloat(value(i), T{});
  }

  template <typename F>
  __device__ float sum(F value) const {
    float own = 0;
    for (int32_t i = threadIdx.x; i < cols_; i += kBlockThreads) own += value(i);
    return this->Reduce(own, Sum{});
  }

  template <typename F>
  __device__ float max(F value) const {
    float own = FloatOfBits(0xff800000u);  // -infinity
    for (int32_t i = threadIdx.x; i < cols_; i += kBlockThreads) own = Maximum(value(i), own);
    return this->Reduce(own, Max{});
  }

 private:
  const int64_t cols_;
};

}  // namespace muster::kernels::cuda
