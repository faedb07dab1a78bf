// Estimates as papers and other projects print them: oracles beside the exact ledger, and the language in which people
// quote figures. Nothing that is allocated is computed from here. Every convention is an argument. Pure functions.
#pragma once

#include <cstdint>

namespace muster {

// Bytes that one parameter costs, by what holds them. Sources disagree, so the recipe is always an input.
struct BytesPerParameter {
  double weight = 0;    // what forward and backward read
  double gradient = 0;  // accumulated
  double master = 0;    // fp32 copy of the weight, 0 when the weight is fp32 itself
  double moment = 0;    // each of Adam's two

  double optimizer() const { return master + 2 * moment; }
  double unsharded() const { return weight + gradient + optimizer(); }
  // The optimizer's part divided over the data-parallel group (ZeRO-1, Megatron's distributed optimizer).
  double optimizer_sharded(int64_t data) const { return weight + gradient + optimizer() / static_cast<double>(data); }
};

// Megatron-LM, megatron/training/theoretical_memory_usage.py: 18, or 6 + 12/d with the distributed optimizer.
BytesPerParameter MegatronMixedPrecision();
// Rajbhandari et al. 2020 (ZeRO), section 3.1: 16, or 4 + 12/d at stage 1.
BytesPerParameter ZeroMixedPrecision();

// Bytes per parameter of model states by ZeRO's stage 0 (baseline) to 3 (all is sharded); figure 1 of that paper.
double ZeroBytesPerParameter(const BytesPerParameter& recipe, int stage, int64_t data);

// Narayanan et al., SC21: GPT models with biases and a tied head.
struct Sc21Model {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t vocab = 51200;
  int64_t sequence = 2048;
};
// Equation 2: 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)).
double Sc21Parameters(const Sc21Model& model);
// Equation 3, with full recomputation of activations: 96 B s l h^2 (1 + s/(6 h) + V/(16 l h)).
double Sc21FlopsPerIteration(const Sc21Model& model, int64_t global_batch);
// Equation 4: 8 T P / (n X), in seconds; `flops_per_gpu` is X, per second.
double Sc21TrainingSeconds(double parameters, double tokens, int64_t gpus, double flops_per_gpu);

// Korthikanti et al. 2022, table 2: 16-bit activations of one transformer layer, dropout masks included, attention
// scores stored (no flash attention).
struct KorthikantiLayer {
  int64_t sequence = 0;
  int64_t micro_batch = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t tensor = 1;
};
enum class KorthikantiTechnique {
  kNone,                     // no parallelism: `tensor` is not read
  kTensor,                   //
  kTensorSequence,           // with sequence parallelism
  kTensorSelective,          // with selective recomputation
  kTensorSequenceSelective,  //
  kFull,                     // full recomputation: the layer's input only
};
double KorthikantiBytesPerLayer(const KorthikantiLayer& layer, KorthikantiTechnique technique);
// What the first stage of an interleaved 1F1B schedule holds more: 1 + (p - 1)/(p v).
double KorthikantiInterleavingFactor(int64_t stages, int64_t chunks);

}  // namespace muster
