#include "common/plan/published_formulas.h"

#include "common/base/check.h"

namespace muster {

BytesPerParameter MegatronMixedPrecision() { return {2, 4, 4, 4}; }
BytesPerParameter ZeroMixedPrecision() { return {2, 2, 4, 4}; }

double ZeroBytesPerParameter(const BytesPerParameter& recipe, int stage, int64_t data) {
  MUSTER_CHECK(stage >= 0 && stage <= 3, "ZeRO stage ", stage);
  const double shards = static_cast<double>(data);
  const double weight = recipe.weight / (stage >= 3 ? shards : 1);
  const double gradient = recipe.gradient / (stage >= 2 ? shards : 1);
  const double optimizer = recipe.optimizer() / (stage >= 1 ? shards : 1);
  return weight + gradient + optimizer;
}

double Sc21Parameters(const Sc21Model& model) {
  const double l = static_cast<double>(model.layers);
  const double h = static_cast<double>(model.hidden);
  const double rows = static_cast<double>(model.vocab + model.sequence);
  return 12 * l * h * h * (1 + 13 / (12 * h) + rows / (12 * l * h));
}

double Sc21FlopsPerIteration(const Sc21Model& model, int64_t global_batch) {
  const double l = static_cast<double>(model.layers);
  const double h = static_cast<double>(model.hidden);
  const double s = static_cast<double>(model.sequence);
  const double v = static_cast<double>(model.vocab);
  return 96 * static_cast<double>(global_batch) * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
}

double Sc21TrainingSeconds(double parameters, double tokens, int64_t gpus, double flops_per_gpu) {
  return 8 * tokens * parameters / (static_cast<double>(gpus) * flops_per_gpu);
}

double KorthikantiBytesPerLayer(const KorthikantiLayer& layer, KorthikantiTechnique technique) {
  const double t = static_cast<double>(layer.tensor);
  const double sbh =
      static_cast<double>(layer.sequence) * static_cast<double>(layer.micro_batch) * static_cast<double>(layer.hidden);
  // The scores, their softmax and its dropout mask: 5 a s / h.
  const double scores =
      5 * static_cast<double>(layer.heads) * static_cast<double>(layer.sequence) / static_cast<double>(layer.hidden);
  switch (technique) {
    case KorthikantiTechnique::kNone:
      return sbh * (34 + scores);
    case KorthikantiTechnique::kTensor:
      return sbh * (10 + 24 / t + scores / t);
    case KorthikantiTechnique::kTensorSequence:
      return sbh * (34 + scores) / t;
    case KorthikantiTechnique::kTensorSelective:
      return sbh * (10 + 24 / t);
    case KorthikantiTechnique::kTensorSequenceSelective:
      return sbh * 34 / t;
    case KorthikantiTechnique::kFull:
      return sbh * 2;
  }
  return 0;
}

double KorthikantiInterleavingFactor(int64_t stages, int64_t chunks) {
  return 1 + static_cast<double>(stages - 1) / static_cast<double>(stages * chunks);
}

}  // namespace muster
