// What one rank is to do: the model, how it is cut, and how it is trained. Plain data, made by worker/rank from an
// assignment (or by a test), read by the trainer. It knows neither files nor the coordinator's messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/layout.h"
#include "common/plan/model_shape.h"

namespace muster {

struct AdamWOptions {
  double learning_rate = 6e-4;  // the peak, reached when the warm-up ends
  double beta1 = 0.9;           // decay of the average of gradients
  double beta2 = 0.95;          // of their squares; 0.999 suits small batches
  double epsilon = 1e-8;        // added to the root of the second moment
  double weight_decay = 0.1;    // decoupled; tensors of two dimensions only
};

// learning rate of step s, from 1 (worker/engine/lr_schedule.h has the formula).
struct ScheduleOptions {
  enum class Decay { kConstant, kCosine, kLinear, kWarmupStableDecay };
  int64_t warmup_steps = 0;  // linear from learning_rate / warmup_steps
  Decay decay = Decay::kCosine;
  double min_lr_ratio = 0.1;  // where the decay ends, of the peak
  int64_t decay_steps = 0;    // last steps, over which kWarmupStableDecay decays; 0: a tenth of all
};

// What happens with a step whose loss or gradients are not as they should be (worker/engine/step_policy.h).
struct PolicyOptions {
  enum class Reaction {
    kNone,    // a spike is trained on, a value that is not finite ends the run
    kSkip,    // the step's samples are passed over
    kRewind,  // the run ends with kRewind, to go on from an earlier checkpoint behind the step's samples
  };
  Reaction loss_spike = Reaction::kNone;
  Reaction non_finite = Reaction::kNone;
  // Deviations above the median at which a loss is a spike. Lower catches smaller ones and, below about 5, noise.
  double spike_threshold = 6;
  // How far a rewind goes back before the step. The weights were spoilt before the loss showed it: 100 steps helped
  // PaLM (Chowdhery et al. 2022, section 5.1).
  int64_t rewind_steps = 100;
};

struct TrainingOptions {
  int64_t steps = 0;  // optimizer steps of the whole job, counted from its beginning and not from a resume
  AdamWOptions adamw;
  ScheduleOptions schedule;
  double clip_grad_norm = 1.0;  // largest global gradient norm, 0 to leave gradients alone
  uint64_t seed = 1234;         // of the initial weights
};

// Validation runs with the weights as they are after a step. The same windows each time, shared by the replicas.
struct ValidationOptions {
  int64_t every_steps = 0;         // 0: never
  int64_t windows = 0;             // samples of each validation; at least 1 where validation runs at all
  bool before_first_step = false;  // also the loss of the initial (or resumed) weights
};

struct CheckpointOptions {
  std::string directory;    // root of the job's checkpoints; each is written to attempt-N/step-M below it. Empty: none
                            // are written
  int64_t every_steps = 0;  // 0: only when stopped and at the end
  int64_t attempt = 1;      // N above
  std::string resume_from;  // the checkpoint's own directory, absolute; empty: begin from initial weights
  // After a rewind: the sample to go on with, whatever the checkpoint says; 0: the checkpoint's.
  int64_t next_sample = 0;
  std::string job_id;     // recorded in the manifest
  std::string spec_json;  // the resolved job, recorded in the manifest so that a checkpoint explains itself
};

struct EngineConfig {
  ModelShape model;
  Layout layout;
  int64_t rank = 0;               // tp + tensor * (dp + data * pp)
  std::vector<UnitRange> stages;  // layout.virtual_stages() runs of units, the whole model in order; cuts may fall in
                                  // a layer. A rank runs ChunksOf (common/plan/layout.h) them
  TrainingOptions training;
  PolicyOptions policy;
  ValidationOptions validation;
  CheckpointOptions checkpoint;
  int64_t loader_threads = 1;  // that read training samples; results do not depend on it
};

// INVALID_ARGUMENT naming the field when a value is out of range or contradicts another; UNIMPLEMENTED for what the
// schema has and this engine does not train (tensor parallelism, sharded optimizer, fp16).
absl::Status CheckEngineConfig(const EngineConfig& config);

}  // namespace muster
