#include "worker/model/unit_binder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/plan/ledger.h"
#include "common/plan/parameter_shard.h"

namespace muster {

UnitBinder::UnitBinder(const UnitContext& context, const Unit& unit)
    : context_(context),
      name_(unit.name()),
      parameter_prefix_(unit.parameter_prefix()),
      parameters_(Parameters(context.shape)) {}

Weight UnitBinder::BindWeight(const std::string& name) const {
  const std::string full_name = absl::StrCat(parameter_prefix_, name);
  return Bind(full_name, absl::StrCat("gradient/", full_name));
}

Weight UnitBinder::BindTiedWeight() const { return Bind(kTiedParameter, kTiedHeadGradient); }

Linear UnitBinder::BindLinear(const std::string& name) const {
  Linear linear{.weight = BindWeight(absl::StrCat(name, ".weight"))};
  const std::string bias = absl::StrCat(name, ".bias");
  if (HasParameter(absl::StrCat(parameter_prefix_, bias))) linear.bias = BindWeight(bias);
  return linear;
}

ResidualLinear UnitBinder::BindResidualLinear(const std::string& name) const {
  const Linear whole = BindLinear(name);
  return {.linear = {.weight = whole.weight}, .bias = whole.bias};
}

Norm UnitBinder::BindNorm(const std::string& name) const {
  const Linear bound = BindLinear(name);
  return {.weight = bound.weight, .bias = bound.bias, .eps = static_cast<float>(context_.shape.norm_eps)};
}

Tensor UnitBinder::Saved(const std::string& name, int64_t slot, DType dtype, const std::vector<int64_t>& dims) const {
  const std::string rebuilt = absl::StrCat("rebuilt/", name_, "/", name);
  if (context_.memory.has(rebuilt)) return context_.memory.Bind(rebuilt, dtype, dims);
  return context_.memory.Bind(absl::StrCat("saved/", name_, "/", name), dtype, dims, slot);
}

Norm::State UnitBinder::SavedNorm(const Norm& norm, int64_t slot) const {
  const int64_t rows = context_.stream_rows();
  return {.out = Saved("norm_out", slot, context_.compute, {rows, context_.shape.hidden}),
          .mean = norm.bias.has_value() ? Saved("mean", slot, DType::kF32, {rows}) : Tensor(),
          .rstd = Saved("rstd", slot, DType::kF32, {rows})};
}

Tensor UnitBinder::Transient(const std::string& name, DType dtype, const std::vector<int64_t>& dims) const {
  return context_.memory.Bind(absl::StrCat("transient/", name_, "/", name), dtype, dims);
}

Tensor UnitBinder::Partials() const {
  return context_.memory.BindBytes(absl::StrCat("transient/", name_, "/partials"));
}

bool UnitBinder::HasParameter(const std::string& full_name) const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [&](const ParameterInfo& parameter) { return parameter.name == full_name; });
}

Weight UnitBinder::Bind(const std::string& full_name, const std::string& gradient) const {
  const auto info = std::find_if(parameters_.begin(), parameters_.end(),
                                 [&](const ParameterInfo& parameter) { return parameter.name == full_name; });
  MUSTER_CHECK(info != parameters_.end(), "the model has no parameter ", full_name);
  const std::vector<int64_t> dims =
      ShardOnTensorRank(context_.shape, *info, context_.tensor_size(), context_.tensor_rank()).local_dims;
  Weight weight{.value = context_.memory.Bind(absl::StrCat("parameter/", full_name), context_.compute, dims)};
  // The ledger has no gradient for a parameter that is not trained.
  if (context_.memory.has(gradient)) weight.gradient = context_.memory.Bind(gradient, DType::kF32, dims);
  return weight;
}

}  // namespace muster
