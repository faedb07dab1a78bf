#include "worker/model/unit_binder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace muster {

UnitBinder::UnitBinder(const UnitContext& context, const Unit& unit)
    : context_(context),
      name_(unit.name()),
      parameter_prefix_(unit.parameter_prefix()),
      parameters_(Parameters(context.shape)) {}

Weight UnitBinder::BindWeight(const std::string& name) const {
  const std::string full_name = absl::StrCat(parameter_prefix_, name);
  const auto info = std::find_if(parameters_.begin(), parameters_.end(),
                                 [&](const ParameterInfo& parameter) { return parameter.name == full_name; });
  MUSTER_CHECK(info != parameters_.end(), "the model has no parameter ", full_name);
  return {.value = context_.memory.Bind(absl::StrCat("parameter/", full_name), context_.compute, info->dims),
          .gradient = context_.memory.Bind(absl::StrCat("gradient/", full_name), DType::kF32, info->dims)};
}

Linear UnitBinder::BindLinear(const std::string& name) const {
  Linear linear{.weight = BindWeight(absl::StrCat(name, ".weight"))};
  const std::string bias = absl::StrCat(name, ".bias");
  if (context_.memory.has(absl::StrCat("parameter/", parameter_prefix_, bias))) linear.bias = BindWeight(bias);
  return linear;
}

LayerNorm UnitBinder::BindNorm(const std::string& name) const {
  return {.weight = BindWeight(absl::StrCat(name, ".weight")),
          .bias = BindWeight(absl::StrCat(name, ".bias")),
          .eps = static_cast<float>(context_.shape.norm_eps)};
}

Tensor UnitBinder::Saved(const std::string& name, int64_t slot, DType dtype, const std::vector<int64_t>& dims) const {
  return context_.memory.Bind(absl::StrCat("saved/", name_, "/", name), dtype, dims, slot);
}

Tensor UnitBinder::Transient(const std::string& name, DType dtype, const std::vector<int64_t>& dims) const {
  return context_.memory.Bind(absl::StrCat("transient/", name_, "/", name), dtype, dims);
}

Tensor UnitBinder::Partials() const {
  return context_.memory.BindBytes(absl::StrCat("transient/", name_, "/partials"));
}

}  // namespace muster
