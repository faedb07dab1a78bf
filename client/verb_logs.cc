// muster logs
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/verbs.h"

namespace muster {
namespace {

// With several ranks every line says whose it is.
void PrintChunk(const v1::LogChunk& chunk, bool with_rank) {
  absl::string_view data = chunk.data();
  if (!with_rank) {
    std::fwrite(data.data(), 1, data.size(), stdout);
  } else {
    if (!data.empty() && data.back() == '\n') data.remove_suffix(1);
    for (absl::string_view line : absl::StrSplit(data, '\n')) {
      std::fputs(absl::StrCat("[rank ", chunk.rank(), "] ", line, "\n").c_str(), stdout);
    }
  }
  std::fflush(stdout);
}

}  // namespace

absl::StatusOr<ExitCode> RunVerb(Session& session, const LogsOptions& options) {
  v1::StreamLogsRequest request;
  request.set_job(options.job);
  for (int64_t rank : options.ranks) request.add_ranks(rank);
  request.set_follow(options.follow);
  request.set_attempt(options.attempt);
  request.set_tail_lines(options.tail_lines);

  grpc::ClientContext context;
  if (!options.follow) Session::SetDeadline(context, session.options().timeout_seconds);
  const auto reader = session.jobs().StreamLogs(&context, request);
  v1::LogChunk chunk;
  while (reader->Read(&chunk)) PrintChunk(chunk, options.ranks.size() != 1);
  const absl::Status status = session.Explain(reader->Finish());
  if (!status.ok()) return status;
  return ExitCode::kOk;
}

}  // namespace muster
