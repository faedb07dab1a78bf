// Whether a tensor holds NaN or infinity: for saying where a run went wrong, not for every step.
#pragma once

#include "worker/tensor/device.h"
#include "worker/tensor/view.h"

namespace muster {

// Copies the tensor to the host piece by piece. REQUIRES: f32, bf16 or f16, dense.
bool AllFinite(Device& device, const Tensor& tensor);

}  // namespace muster
