// A part of a logical tensor that lies in this rank's memory: what a rank saves, and what it asks back, under any
// layout.
#pragma once

#include <string>
#include <vector>

#include "common/formats/checkpoint_manifest.h"

namespace muster {

struct LocalTensor {
  std::string name;  // logical, common/plan/model_shape.h
  StateKind kind = StateKind::kMaster;
  StoredType type = StoredType::kF32;
  std::vector<int64_t> global_dims;
  Box box;               // the part that `data` holds, dense
  void* data = nullptr;  // read by the writer, written by the reader; host memory
};

}  // namespace muster
