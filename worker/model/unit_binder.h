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

  // This tensor rank's part of a parameter by its name below the unit's: "qkv.weight" of unit 3.attention is
  // layer.3.attention.qkv.weight.
  Weight BindWeight(const std::string& name) const;
  Weight BindTiedWeight() const;                     // the token embedding, with the head's own gradient
  Linear BindLinear(const std::string& name) const;  // name.weight and, where the model has one, name.bias
  ResidualLinear BindResidualLinear(const std::string& name) const;
  Norm BindNorm(const std::string& name) const;

  // Kept from forward to backward in the slot of a micro-batch, or, where recomputation rebuilds it, one tensor for all
  // slots.
  Tensor Saved(const std::string& name, int64_t slot, DType dtype, const std::vector<int64_t>& dims) const;
  Norm::State SavedNorm(const Norm& norm, int64_t slot) const;
  // Alive only within the unit's forward, or its backward.
  Tensor Transient(const std::string& name, DType dtype, const std::vector<int64_t>& dims) const;
  // Partial column sums of backward, all of the entry: layers shape it.
  Tensor Partials() const;

 private:
  bool HasParameter(const std::string& full_name) const;
  Weight Bind(const std::string& full_name, const std::string& gradient) const;

  const UnitContext& context_;
  const std::string name_;              // "3.attention"
  const std::string parameter_prefix_;  // "layer.3.attention."
  std::vector<ParameterInfo> parameters_;
};

}  // namespace muster
