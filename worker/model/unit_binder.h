// Binds the tensors of one unit by the names that the ledger gave them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/plan/model_shape.h"
#include "worker/model/layers.h"
#include "worker/model/unit.h"

namespace muster {

class UnitBinder {
 public:
  UnitBinder(const UnitContext& context, const Unit& unit);

  // A parameter by its name below the unit's: "qkv.weight" of unit 3.attention is layer.3.attention.qkv.weight.
  Weight BindWeight(const std::string& name) const;
  Linear BindLinear(const std::string& name) const;   // name.weight and, where the model has one, name.bias
  LayerNorm BindNorm(const std::string& name) const;  // name.weight and name.bias

  // Kept from forward to backward, in the slot of a micro-batch.
  Tensor Saved(const std::string& name, int64_t slot, DType dtype, const std::vector<int64_t>& dims) const;
  // Alive only within the unit's backward.
  Tensor Transient(const std::string& name, DType dtype, const std::vector<int64_t>& dims) const;
  // Partial column sums of backward, all of the entry: layers shape it.
  Tensor Partials() const;

 private:
  const UnitContext& context_;
  const std::string name_;              // "3.attention"
  const std::string parameter_prefix_;  // "layer.3.attention."
  std::vector<ParameterInfo> parameters_;
};

}  // namespace muster
