#include "common/plan/tensor_split.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"

namespace muster {

int TensorSplitDimension(const ParameterInfo& parameter) {
  const absl::string_view name = parameter.name;
  if (name == "embedding.token.weight" || name == "head.weight") return 0;
  for (absl::string_view column : {".qkv.weight", ".qkv.bias", ".up.weight", ".up.bias", ".gate_up.weight"}) {
    if (absl::EndsWith(name, column)) return 0;
  }
  for (absl::string_view row : {".projection.weight", ".down.weight"}) {
    if (absl::EndsWith(name, row)) return 1;
  }
  return -1;
}

int64_t ElementsOnTensorRank(const ParameterInfo& parameter, int64_t tensor) {
  const int dimension = TensorSplitDimension(parameter);
  if (dimension < 0) return parameter.elements();
  MUSTER_CHECK(parameter.dims[dimension] % tensor == 0, parameter.name, " over ", tensor);
  return parameter.elements() / tensor;
}

int64_t ParametersOnTensorRank(const ModelShape& shape, int64_t tensor) {
  int64_t count = 0;
  for (const ParameterInfo& parameter : Parameters(shape)) count += ElementsOnTensorRank(parameter, tensor);
  return count;
}

}  // namespace muster
