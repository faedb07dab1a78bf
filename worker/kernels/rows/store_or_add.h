// Ends a norm's backward: the gradient of the residual stream may be in its place already. Plain C++17.
#pragma once

#include "worker/kernels/formulas.h"

namespace muster::kernels {

// to[i] = value(i), or to[i] += value(i) with `add`, rounded once.
template <typename T, typename Row, typename Value>
MUSTER_KERNEL_FUNCTION void StoreOrAdd(const Row& row, T* to, bool add, const Value& value) {
  if (add) {
    const auto before = row.load(to);
    row.store(to, [&](auto i) { return before[i] + value(i); });
  } else {
    row.store(to, value);
  }
}

}  // namespace muster::kernels
