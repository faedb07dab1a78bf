// muster get checkpoints, muster checkpoint --now
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output.h"
#include "client/verbs.h"
#include "common/base/format_bytes.h"
#include "common/base/status_macros.h"
#include "common/rpc/proto_time.h"

namespace muster {
namespace {

std::string CheckpointsTable(const v1::ListCheckpointsResponse& checkpoints) {
  if (checkpoints.checkpoints().empty()) return "No checkpoints yet. Write one: muster checkpoint JOB --now\n";
  using Align = Table::Align;
  Table table({{"STEP", Align::kRight},
               {"ATTEMPT", Align::kRight},
               {"SIZE", Align::kRight},
               {"SECONDS", Align::kRight},
               {"WRITTEN"},
               {"LINEAGE"},
               {"PATH"}});
  for (const v1::Checkpoint& checkpoint : checkpoints.checkpoints()) {
    table.AddRow({absl::StrCat(checkpoint.step()), absl::StrCat(checkpoint.attempt()), FormatBytes(checkpoint.bytes()),
                  absl::StrFormat("%.3f", checkpoint.seconds()),
                  absl::FormatTime("%Y-%m-%d %H:%M:%S", FromProto(checkpoint.written_at()), absl::LocalTimeZone()),
                  checkpoint.on_lineage() ? "yes" : "no", checkpoint.path()});
  }
  return table.ToString();
}

}  // namespace

absl::StatusOr<ExitCode> RunVerb(Session& session, const GetCheckpointsOptions& options) {
  v1::ListCheckpointsRequest request;
  request.set_job(options.job);
  request.set_page_size(1000);
  v1::ListCheckpointsResponse all;
  do {
    MUSTER_ASSIGN_OR_RETURN(v1::ListCheckpointsResponse page,
                            session.Call(session.jobs(), &v1::JobService::Stub::ListCheckpoints, request));
    for (v1::Checkpoint& checkpoint : *page.mutable_checkpoints()) *all.add_checkpoints() = std::move(checkpoint);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  PrintResource(session.options(), all, CheckpointsTable(all));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunVerb(Session& session, const CheckpointOptions& options) {
  v1::SaveCheckpointRequest request;
  request.set_job(options.job);
  MUSTER_ASSIGN_OR_RETURN(const v1::Checkpoint checkpoint,
                          session.Call(session.jobs(), &v1::JobService::Stub::SaveCheckpoint, request));
  PrintResource(session.options(), checkpoint,
                absl::StrFormat("checkpoint of step %d: %s, %s in %.3f s\n", checkpoint.step(), checkpoint.path(),
                                FormatBytes(checkpoint.bytes()), checkpoint.seconds()));
  return ExitCode::kOk;
}

}  // namespace muster
