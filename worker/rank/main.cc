// muster-rank: one rank of one job, started by the agent; or, with --local, a whole job in this process.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <string>

#include "common/base/clock.h"
#include "common/base/exit_codes.h"
#include "common/base/signals.h"
#include "worker/rank/local_job.h"
#include "worker/rank/options.h"
#include "worker/rank/rank_runner.h"

namespace muster {
namespace {

constexpr int kExitUsage = 2;

constexpr char kDebuggerHelp[] =
    "Under a debugger, with a build of -DCMAKE_BUILD_TYPE=Debug:\n"
    "  gdb --args muster-rank --local job.yaml --data-root DIR --checkpoint-root DIR\n"
    "  (gdb) break muster::kernels::AdamW     any function of the engine\n"
    "  (gdb) run\n"
    "  (gdb) info threads                     each rank is a thread of its name: \"rank 0\", \"rank 1\", ...\n"
    "  (gdb) thread 3                         look at another rank\n"
    "  (gdb) set scheduler-locking step       hold the others while one is stepped through\n"
    "  (gdb) handle SIGINT nostop pass        Ctrl-C then ends training at a checkpoint, as without gdb\n"
    "Ranks wait an hour for each other, so one may be held for long. SIGINT or SIGTERM: finish the step, write a\n"
    "checkpoint, end with code 10; once more: end at once.";

void DeclareFlags(CLI::App& app, RankOptions& options) {
  app.set_version_flag("--version", std::string("muster-rank " MUSTER_VERSION));
  app.add_option("--local", options.local_file,
                 "Run this job file's ranks as threads of this process, without a coordinator");
  app.add_flag("--resume", options.resume, "With --local: go on from the newest checkpoint of an earlier run");
  app.add_option("--data-root", options.data_root, "Directory below which the job finds its data")
      ->capture_default_str();
  app.add_option("--checkpoint-root", options.checkpoint_root, "Directory below which checkpoints are written")
      ->capture_default_str();
  const std::string by_agent = "Set by muster-worker";
  app.add_option("--assignment", options.assignment_file, "File of a muster.v1.Assignment, binary or .json")
      ->group(by_agent);
  app.add_option("--agent", options.agent, "Where reports go, unix:PATH")->group(by_agent);
  app.add_option("--coordinator", options.coordinator, "Where ranks find each other, HOST:PORT")->group(by_agent);
  app.add_option("--lease-file", options.lease_file, "The agent's lease")->group(by_agent);
  app.add_option("--lock-file", options.lock_file, "Locked while this process lives")->group(by_agent);
  app.add_option("--host", options.host, "Address at which other ranks reach this one")->group(by_agent);
}

// Called by operator new when memory is refused: RLIMIT_DATA is the rank's limit. Nothing may be allocated here.
[[noreturn]] void OutOfMemory() {
  constexpr char kMessage[] = "muster-rank: error: out of memory: an allocation was refused within this rank's limit\n";
  if (write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1) < 0) _exit(kExitOutOfMemory);
  _exit(kExitOutOfMemory);
}

template <typename Job>
int RunStoppable(const RankOptions& options) {
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  Job job(options, clock.get());
  ShutdownSignals signals([&](int signal, int count) {
    if (job.RequestStop() && count == 1) return;
    std::fprintf(stderr,
                 count == 1 ? "muster-rank: stopped before training began\n" : "muster-rank: stopped at once\n");
    _exit(kExitStopped);
  });
  return job.Run();
}

int Main(int argc, char** argv) {
  std::set_new_handler(OutOfMemory);
  CLI::App app("One rank of one job. People start it with --local; muster-worker starts it otherwise.");
  RankOptions options;
  DeclareFlags(app, options);
  app.footer(kDebuggerHelp);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (const absl::Status status = CheckRankOptions(options); !status.ok()) {
    std::fprintf(stderr, "muster-rank: error: %s\n", std::string(status.message()).c_str());
    return kExitUsage;
  }
  std::error_code error;
  options.checkpoint_root = std::filesystem::absolute(options.checkpoint_root, error).lexically_normal().string();
  try {
    return options.local_file.empty() ? RunStoppable<RankRunner>(options) : RunStoppable<LocalJob>(options);
  } catch (const std::exception& refused) {  // of the standard library only: no room for a thread's stack
    std::fprintf(stderr, "muster-rank: error: out of memory: %s\n", refused.what());
    return kExitOutOfMemory;
  }
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
