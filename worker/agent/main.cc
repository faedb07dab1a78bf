// muster-worker: the agent of one host.

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/signals.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/metric_catalog.h"
#include "common/spec/scalars.h"
#include "worker/agent/agent.h"
#include "worker/agent/options.h"

namespace muster {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

struct Flags {
  AgentOptions options;
  std::string coordinator;
  std::string slot_memory = "512MiB";
  std::string http = "127.0.0.1:7072";
  std::string log_level = "info";
  bool print_metrics_docs = false;
};

void DeclareFlags(CLI::App& app, Flags& flags) {
  AgentOptions& options = flags.options;
  app.set_version_flag("--version", std::string("muster-worker " MUSTER_VERSION));
  app.add_option("--coordinator", flags.coordinator, "Where musterd listens, HOST:PORT")->envname("MUSTER_COORDINATOR");
  app.add_option("--name", options.name, "This worker's name, unique in the cluster (default: the host's name)");
  app.add_option("--slots", options.slots, "Ranks that may run here at once on the CPU")->capture_default_str();
  app.add_option("--slot-memory", flags.slot_memory,
                 "Memory of one rank, with KiB, MiB or GiB (1024), or KB, MB or GB (1000)")
      ->capture_default_str();
  app.add_option("--http", flags.http, "Serve /metrics and /healthz on HOST:PORT; port 0 picks a free one")
      ->capture_default_str();
  app.add_option("--address", options.address,
                 "Host by which other hosts reach ranks here (default: 127.0.0.1 with a coordinator on loopback, else "
                 "the host's name)");
  app.add_option("--data-root", options.data_root, "Directory below which jobs find their data (default: .)");
  app.add_option("--checkpoint-root", options.checkpoint_root,
                 "Directory below which jobs write checkpoints, shared by all workers of a job (default: .)");
  app.add_option("--state-dir", options.state_dir,
                 "Locks, assignments and logs; one agent a directory (default: muster-worker-NAME in the temporary "
                 "directory)");
  app.add_option("--rank-program", options.rank_program, "muster-rank to run (default: beside this program)");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_flag("--print-metrics-docs", flags.print_metrics_docs, "Print docs/metrics.md and exit");
}

int Refuse(const absl::Status& status, int exit_code) {
  std::fprintf(stderr, "muster-worker: error: %s\n", std::string(status.message()).c_str());
  return exit_code;
}

absl::Status ReadFlags(Flags& flags) {
  if (!flags.coordinator.empty()) {
    absl::StatusOr<HostPort> coordinator = ParseHostPort(flags.coordinator, "--coordinator");
    if (!coordinator.ok()) return coordinator.status();
    flags.options.coordinator = *coordinator;
  }
  absl::StatusOr<HostPort> http = ParseHostPort(flags.http, "--http");
  if (!http.ok()) return http.status();
  flags.options.http = *http;
  absl::StatusOr<int64_t> slot_memory = ParseSize(flags.slot_memory);
  if (!slot_memory.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--slot-memory: ", slot_memory.status().message()));
  }
  flags.options.slot_memory_bytes = *slot_memory;
  return absl::OkStatus();
}

int Serve(const Flags& flags) {
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  EventLoop loop(clock.get());
  std::unique_ptr<Agent> agent;
  absl::Mutex mutex;  // a signal may come before there is an agent
  ShutdownSignals signals([&](int signal, int count) {
    absl::MutexLock lock(&mutex);
    if (agent == nullptr) _exit(0);
    agent->Shutdown(count);
  });
  absl::StatusOr<std::unique_ptr<Agent>> created = Agent::Create(flags.options, MUSTER_VERSION, &loop, clock.get());
  if (!created.ok()) return Refuse(created.status(), kExitFailed);
  {
    absl::MutexLock lock(&mutex);
    agent = *std::move(created);
  }
  std::printf("muster-worker %s: http on %s, %lld CPU slot%s\n", flags.options.name.c_str(),
              agent->http_address().ToString().c_str(), static_cast<long long>(flags.options.slots),
              flags.options.slots == 1 ? "" : "s");
  std::fflush(stdout);
  agent->Run();
  absl::MutexLock lock(&mutex);
  agent.reset();
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "The agent of one host: runs the ranks that the coordinator places here, supervises them, exports metrics.");
  Flags flags;
  DeclareFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (flags.print_metrics_docs) {
    std::cout << MetricDocumentation();
    return 0;
  }
  spdlog::set_default_logger(spdlog::stderr_color_mt("muster-worker"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  if (absl::Status status = ReadFlags(flags); !status.ok()) return Refuse(status, kExitUsage);
  std::error_code error;
  FillAgentDefaults(std::filesystem::read_symlink("/proc/self/exe", error).string(), flags.options);
  if (absl::Status status = CheckAgentOptions(flags.options); !status.ok()) return Refuse(status, kExitUsage);
  return Serve(flags);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
