#include "worker/engine/stage_parameters.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/kernels/kernels.h"

namespace muster {
namespace {

constexpr int64_t kPieceElements = 16384;  // 64 KiB on the host at a time

}  // namespace

std::vector<StageParameter> BindStageParameters(StageMemory& memory, const ModelShape& shape, UnitRange units,
                                                DType compute) {
  const std::vector<ParameterInfo> model = Parameters(shape);
  std::vector<StageParameter> result;
  for (ParameterInfo& info : ChunkParameters(shape, {units})) {
    const auto flat = [&](const std::string& entry, DType dtype) {
      return memory.Bind(entry, dtype, {info.elements()});
    };
    StageParameter parameter;
    parameter.model_index = static_cast<size_t>(
        std::find_if(model.begin(), model.end(), [&](const ParameterInfo& other) { return other.name == info.name; }) -
        model.begin());
    parameter.owned = info.unit >= units.first;
    parameter.value = flat(absl::StrCat("parameter/", info.name), compute);
    parameter.gradient =
        flat(parameter.owned ? absl::StrCat("gradient/", info.name) : std::string(kTiedHeadGradient), DType::kF32);
    parameter.master =
        compute == DType::kF32 ? parameter.value : flat(absl::StrCat("optimizer/master/", info.name), DType::kF32);
    parameter.first = flat(absl::StrCat("optimizer/first/", info.name), DType::kF32);
    parameter.second = flat(absl::StrCat("optimizer/second/", info.name), DType::kF32);
    parameter.info = std::move(info);
    result.push_back(std::move(parameter));
  }
  return result;
}

absl::Status InitializeParameters(
    KernelContext& kernels, const std::vector<StageParameter>& parameters,
    const std::function<absl::Status(const ParameterInfo&, int64_t first_element, absl::Span<float>)>& values_of) {
  std::vector<float> piece(kPieceElements);
  for (const StageParameter& parameter : parameters) {
    const int64_t elements = parameter.info.elements();
    for (int64_t first = 0; first < elements; first += kPieceElements) {
      const absl::Span<float> values(piece.data(), static_cast<size_t>(std::min(kPieceElements, elements - first)));
      MUSTER_RETURN_IF_ERROR(values_of(parameter.info, first, values));
      kernels.device().CopyToDevice(parameter.master.as<float>() + first, values.data(),
                                    static_cast<int64_t>(values.size() * sizeof(float)));
      // The next piece overwrites this one on the host.
      MUSTER_RETURN_IF_ERROR(kernels.device().Synchronize());
    }
    kernels::Zero(kernels, parameter.first);
    kernels::Zero(kernels, parameter.second);
  }
  CastMastersToValues(kernels, parameters);
  return absl::OkStatus();
}

void CastMastersToValues(KernelContext& kernels, const std::vector<StageParameter>& parameters) {
  for (const StageParameter& parameter : parameters) {
    if (parameter.value.dtype != DType::kF32) kernels::Cast(kernels, parameter.master, parameter.value);
  }
}

}  // namespace muster
