#include "worker/rank/initial_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/spec/plan_proto.h"

namespace muster {
namespace {

absl::StatusOr<InitialModel> Open(const std::string& directory, const ModelShape& shape) {
  InitialModel initial;
  initial.directory = directory;
  MUSTER_ASSIGN_OR_RETURN(HuggingFaceModel model, HuggingFaceModel::Open(directory, shape));
  initial.model = std::move(model);
  const std::string check_path = absl::StrCat(directory, "/", kSelfCheckFileName);
  if (!PathExists(check_path)) return initial;
  MUSTER_ASSIGN_OR_RETURN(const std::string json, ReadFile(check_path));
  MUSTER_ASSIGN_OR_RETURN(LogitsSelfCheck check, ParseSelfCheck(json, check_path, shape));
  initial.self_check = std::move(check);
  return initial;
}

}  // namespace

EngineEvent InitialModel::Event() const {
  EngineEvent event;
  event.details["directory"] = directory;
  if (self_check.has_value()) {
    event.type = "INITIAL_WEIGHTS_CHECKED";
    event.message = absl::StrCat("initial weights from ", directory, ", which give the logits that ",
                                 self_check->computed_by, " computed");
  } else {
    event.type = "INITIAL_WEIGHTS_UNCHECKED";
    event.message = absl::StrCat("initial weights from ", directory, "; it has no ", kSelfCheckFileName,
                                 ", so their logits were not checked");
  }
  return event;
}

void InitialModel::GiveTo(TrainerParts& parts) const {
  if (!model.has_value()) return;
  parts.initial_weights = [this](const ParameterInfo& parameter, int64_t first_element, absl::Span<float> values) {
    model->Read(parameter, first_element, values);
    return absl::OkStatus();
  };
  if (self_check.has_value()) parts.self_check = &*self_check;
}

absl::StatusOr<InitialModel> OpenInitialModel(const v1::JobSpec& resolved, const RankRoots& roots, bool resumes) {
  const std::string& path = resolved.model().init_from();
  if (path.empty() || resumes) return InitialModel{};
  MUSTER_ASSIGN_OR_RETURN(const std::string directory, BelowRoot(roots.data, path, "model.init_from"));
  absl::StatusOr<InitialModel> initial = Open(directory, ToEngineInputs(resolved).model);
  if (initial.ok()) return initial;
  return absl::InvalidArgumentError(absl::StrCat("model.init_from: ", initial.status().message()));
}

}  // namespace muster
