#include "worker/rank/data_sources.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::Status Name(const absl::Status& status, const char* field) {
  return absl::Status(status.code(), absl::StrCat(field, ": ", status.message()));
}

}  // namespace

absl::StatusOr<DataSources> OpenData(const v1::JobSpec& resolved, const RankRoots& roots) {
  DataSources sources;
  MUSTER_ASSIGN_OR_RETURN(const GptSampleSourceOptions train, TrainingData(resolved, roots));
  absl::StatusOr<std::unique_ptr<GptSampleSource>> opened = GptSampleSource::Open(train);
  if (!opened.ok()) return Name(opened.status(), "data.train");
  sources.train = *std::move(opened);
  if (resolved.data().validation().empty()) return sources;

  MUSTER_ASSIGN_OR_RETURN(const GptSampleSourceOptions validation, ValidationData(resolved, roots));
  opened = GptSampleSource::Open(validation);
  if (!opened.ok()) return Name(opened.status(), "data.validation");
  sources.validation = *std::move(opened);
  return sources;
}

}  // namespace muster
