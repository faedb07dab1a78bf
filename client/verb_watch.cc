// muster watch, and the following half of submit --wait and --watch
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/job_view.h"
#include "client/verbs.h"
#include "client/watch_view.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Ctrl-C leaves the job alone and says so. Only async-signal-safe calls here.
void OnInterrupt(int) {
  constexpr char kMessage[] =
      "\nStopped watching; the job goes on. `muster watch JOB` shows it again, `muster cancel JOB` ends it.\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  _exit(static_cast<int>(ExitCode::kInterrupted));
}

}  // namespace

absl::StatusOr<ExitCode> FollowJob(Session& session, const std::string& job, double wait_timeout_seconds, bool quiet) {
  std::signal(SIGINT, OnInterrupt);
  const bool machine_readable = session.options().output != OutputFormat::kTable;
  const bool silent = quiet || machine_readable;
  const bool live = StdoutIsTerminal() && !silent;
  const Palette palette(ColoursWanted(session.options().no_color));
  WatchView view(palette, TerminalWidth());
  LiveBlock block;
  bool lost = false;

  const auto on_change = [&](const v1::WatchJobResponse& response) {
    lost = false;
    const std::vector<std::string> events = view.Update(response);
    if (silent) return;
    for (const std::string& event : events) {
      if (live) {
        block.PrintAbove(event);
      } else {
        std::printf("%s\n", event.c_str());
      }
    }
    if (live) {
      block.Draw(view.Block());
    } else if (const std::string line = view.PlainLine(); !line.empty()) {
      std::printf("%s\n", line.c_str());
    }
    std::fflush(stdout);
  };
  const auto on_lost = [&](const absl::Status& status) {
    if (lost) return;
    lost = true;
    const std::string line = absl::StrCat("lost the coordinator, trying again: ", status.message());
    if (live) {
      block.PrintAbove(line);
    } else {
      std::fprintf(stderr, "%s\n", line.c_str());
    }
  };

  MUSTER_ASSIGN_OR_RETURN(const v1::Job ended, session.WatchJob(job, wait_timeout_seconds, on_change, on_lost));
  PrintResource(session.options(), ended, JobSummary(ended, palette));
  return ended.state() == v1::COMPLETED ? ExitCode::kOk : ExitCode::kJobUnsuccessful;
}

absl::StatusOr<ExitCode> RunVerb(Session& session, const WatchOptions& options) {
  return FollowJob(session, options.job, options.wait_timeout_seconds, /*quiet=*/false);
}

}  // namespace muster
