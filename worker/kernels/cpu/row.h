// The processor's policy for row kernels (worker/kernels/row_kernels.h): one thread, SIMD loops.
//
// Included by row_kernels.cc only, once for each instruction set, with MUSTER_ISA naming it: the names below differ
// from set to set, so that the linker keeps every set's code.
#pragma once

#include <cstdint>

#include "worker/kernels/formulas.h"

namespace muster::kernels::MUSTER_ISA {

// Sums and maxima run in this many lanes whatever the instruction set: two registers of AVX-512, eight of SSE. So they
// give the same bits on every machine.
inline constexpr int32_t kLanes = 32;

// Indices are 32-bit and count from the first column of the window, because 64-bit ones take two registers for one of
// f32.
class CpuRow {
 public:
  // Works on columns [first, last) of `cols`; less than 2^31 of them.
  CpuRow(int64_t cols, int64_t first, int64_t last)
      : cols_(cols), first_(first), count_(static_cast<int32_t>(last - first)) {}

  template <typename T>
  struct Fragment {
    const T* elements;
    MUSTER_ROW_BODY float operator[](int32_t i) const { return ToFloat(elements[i]); }
  };

  MUSTER_ROW_BODY int64_t cols() const { return cols_; }
  MUSTER_ROW_BODY int32_t column(int32_t i) const { return static_cast<int32_t>(first_) + i; }

  template <typename T>
  MUSTER_ROW_BODY Fragment<T> load(const T* elements) const {
    return Fragment<T>{elements + first_};
  }

  template <typename T, typename F>
  MUSTER_ROW_BODY void store(T* row, F value) const {
    T* const elements = row + first_;
    const int32_t count = count_;
#pragma omp simd
    for (int32_t i = 0; i < count; ++i) elements[i] = FromFloat(value(i), T{});
  }

  template <typename T, typename F>
  MUSTER_ROW_BODY void store_two(T* first_row, T* second_row, F values) const {
    T* const firsts = first_row + first_;
    T* const seconds = second_row + first_;
    const int32_t count = count_;
#pragma omp simd
    for (int32_t i = 0; i < count; ++i) {
      const Two both = values(i);
      firsts[i] = FromFloat(both.first, T{});
      seconds[i] = FromFloat(both.second, T{});
    }
  }

  template <typename T, typename F>
  MUSTER_ROW_BODY void store_sum(T* row, int64_t terms, F values_of) const {
    T* const elements = row + first_;
    float sums[kLanes * 8];
    for (int32_t begin = 0; begin < count_; begin += kLanes * 8) {
      const int32_t count = count_ - begin < kLanes * 8 ? count_ - begin : kLanes * 8;
      for (int64_t term = 0; term < terms; ++term) {
        const auto value = values_of(term);
        if (term == 0) {
#pragma omp simd
          for (int32_t i = 0; i < count; ++i) sums[i] = value(begin + i);
        } else {
#pragma omp simd
          for (int32_t i = 0; i < count; ++i) sums[i] += value(begin + i);
        }
      }
#pragma omp simd
      for (int32_t i = 0; i < count; ++i) elements[begin + i] = FromFloat(sums[i], T{});
    }
  }

  template <typename F>
  MUSTER_ROW_BODY float sum(F value) const {
    float lanes[kLanes] = {};
    const int32_t count = count_;
    const int32_t whole = count / kLanes * kLanes;
    for (int32_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
      for (int32_t lane = 0; lane < kLanes; ++lane) lanes[lane] += value(i + lane);
    }
    for (int32_t i = whole; i < count; ++i) lanes[i - whole] += value(i);
    for (int32_t width = kLanes / 2; width > 0; width /= 2) {
      for (int32_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
    }
    return lanes[0];
  }

  template <typename F>
  MUSTER_ROW_BODY float max(F value) const {
    float lanes[kLanes];
    for (int32_t lane = 0; lane < kLanes; ++lane) lanes[lane] = FloatOfBits(0xff800000u);  // -infinity
    const int32_t count = count_;
    const int32_t whole = count / kLanes * kLanes;
    for (int32_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
      for (int32_t lane = 0; lane < kLanes; ++lane) lanes[lane] = Maximum(value(i + lane), lanes[lane]);
    }
    for (int32_t i = whole; i < count; ++i) lanes[i - whole] = Maximum(value(i), lanes[i - whole]);
    for (int32_t width = kLanes / 2; width > 0; width /= 2) {
      for (int32_t lane = 0; lane < width; ++lane) lanes[lane] = Maximum(lanes[lane], lanes[lane + width]);
    }
    return lanes[0];
  }

  template <typename F>
  MUSTER_ROW_BODY void add_rows(int64_t first_row, int64_t last_row, float* row, bool add, F values_of) const {
    float* const sums = row + first_;
    const int32_t count = count_;
    if (!add) {
#pragma omp simd
      for (int32_t i = 0; i < count; ++i) sums[i] = 0;
    }
    for (int64_t r = first_row; r < last_row; ++r) {
      const auto value = values_of(r);
#pragma omp simd
      for (int32_t i = 0; i < count; ++i) sums[i] += value(i);
    }
  }

  template <typename F>
  MUSTER_ROW_BODY void once(F f) const {
    f();
  }

 private:
  const int64_t cols_;
  const int64_t first_;
  const int32_t count_;
};

}  // namespace muster::kernels::MUSTER_ISA
