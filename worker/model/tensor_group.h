// How the ranks of a tensor group pass rows to each other: what units need of communication, and all that they see of
// it.
//
// Tensors are dense, in device memory, ordered with the kernels around the call. Every rank of the group makes the same
// calls in the same order. Errors are those of the communicator. For the trainer's thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "worker/tensor/view.h"

namespace muster {

class TensorGroup {
 public:
  virtual ~TensorGroup() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  // whole (size x r, n) = the ranks' local tensors (r, n), one below the other in rank order.
  virtual absl::Status GatherRows(const Tensor& local, const Tensor& whole) = 0;

  // local (r, n) = this rank's rows, [rank x r, (rank + 1) x r), of the sum of the ranks' partial tensors (size x r,
  // n), compute type. Added in rank order in f32 and rounded once.
  virtual absl::Status ReduceScatterRows(const Tensor& partial, const Tensor& local) = 0;
};

}  // namespace muster
