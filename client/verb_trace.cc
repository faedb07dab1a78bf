// muster trace
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/verbs.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/proto_time.h"

namespace muster {

absl::StatusOr<ExitCode> RunVerb(Session& session, const TraceOptions& options) {
  v1::TraceJobRequest request;
  request.set_job(options.job);
  request.set_steps(options.steps);
  if (options.nsys) {
    v1::ProfileRequest& profile = *request.mutable_profile();
    profile.set_profiler("nsys");
    profile.set_rank(options.rank);
    profile.set_directory(options.path);
    *profile.mutable_duration() = ToProto(absl::Seconds(options.nsys_seconds));
  } else if (options.path.empty()) {
    return absl::InvalidArgumentError("say with -o where the timeline goes");
  }
  grpc::ClientContext context;
  Session::SetDeadline(context, session.options().timeout_seconds);
  const auto reader = session.jobs().TraceJob(&context, request);
  std::string timeline;
  std::string message;
  v1::TraceChunk chunk;
  while (reader->Read(&chunk)) {
    absl::StrAppend(&timeline, chunk.data());
    if (!chunk.message().empty()) message = chunk.message();
  }
  MUSTER_RETURN_IF_ERROR(session.Explain(reader->Finish()));
  if (!options.nsys) {
    MUSTER_RETURN_IF_ERROR(WriteFileDurably(options.path, timeline));
    message = absl::StrCat(options.path, ": ", message, "; open it in ui.perfetto.dev or chrome://tracing");
  }
  v1::TraceChunk said;
  said.set_message(message);
  PrintResource(session.options(), said, message + "\n");
  return ExitCode::kOk;
}

}  // namespace muster
