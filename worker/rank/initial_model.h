// The model that a job starts from (model.init_from), opened and checked before any group is joined.
//
// Owned by the rank, outlives its trainer. Immutable; any thread may read.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/formats/hugging_face_model.h"
#include "common/formats/hugging_face_self_check.h"
#include "muster/v1/job.pb.h"
#include "worker/engine/observer.h"
#include "worker/engine/trainer.h"
#include "worker/rank/assignment_config.h"

namespace muster {

struct InitialModel {
  std::string directory;                      // empty: the job starts from weights made from its seed
  std::optional<HuggingFaceModel> model;      // none without a directory
  std::optional<LogitsSelfCheck> self_check;  // none where the directory has none

  // What is to be told of it once its weights are loaded: INITIAL_WEIGHTS_CHECKED or INITIAL_WEIGHTS_UNCHECKED.
  // REQUIRES: a model.
  EngineEvent Event() const;

  // Sets where the trainer takes its initial weights from, and what they are known to compute.
  void GiveTo(TrainerParts& parts) const;
};

// An attempt that resumes (`resumes`) reads no initial weights: it gets an empty one. INVALID_ARGUMENT beginning with
// "model.init_from: " for a path that leaves the data root, and for whatever HuggingFaceModel::Open and ParseSelfCheck
// refuse.
absl::StatusOr<InitialModel> OpenInitialModel(const v1::JobSpec& resolved, const RankRoots& roots, bool resumes);

}  // namespace muster
