// A model's shape as JSON, as a checkpoint's manifest has it: {"family": "gpt2", "layers": 12, ...}, every field of
// ModelShape under its own name. Private to common/formats. Any thread.
#pragma once

#include "absl/status/statusor.h"
#include "common/formats/json_fields.h"
#include "common/plan/model_shape.h"
#include "nlohmann/json.hpp"

namespace muster {

nlohmann::ordered_json ModelShapeToJson(const ModelShape& shape);

// INVALID_ARGUMENT naming the field that is missing, unknown or of the wrong type. Whether such a model can be is for
// CheckModelShape (common/plan/layout_check.h).
absl::StatusOr<ModelShape> ParseModelShape(const JsonField& field);

}  // namespace muster
