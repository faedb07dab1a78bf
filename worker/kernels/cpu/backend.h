// What a KernelContext holds when the kernels run on the processor.
//
// Owned by the context; used by the files of this folder only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/kernels/context.h"

namespace muster {

class KernelContext::Backend {
 public:
  Backend(const KernelOptions& options, const Tensor& workspace) : options_(options), workspace_(workspace) {}

 private:
  const KernelOptions options_;
  const Tensor workspace_;
};

}  // namespace muster
