// musterd: the coordinator of a cluster.

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/signals.h"
#include "server/coordinator.h"
#include "server/options.h"

namespace muster {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

struct Flags {
  std::string listen = "127.0.0.1:7070";
  std::string http = "127.0.0.1:7071";
  std::string state_dir = "musterd-state";
  double heartbeat_seconds = 1;
  double lease_seconds = 10;
  double fence_seconds = 300;
  std::string log_level = "info";
};

void DeclareFlags(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", std::string("musterd " MUSTER_VERSION));
  app.add_option("--listen", flags.listen, "Serve agents, ranks and clients on HOST:PORT; port 0 picks a free one")
      ->capture_default_str();
  app.add_option("--http", flags.http, "Serve /metrics and /healthz on HOST:PORT; port 0 picks a free one")
      ->capture_default_str();
  app.add_option("--state-dir", flags.state_dir, "Directory of all that outlives musterd: jobs, events, workers")
      ->capture_default_str();
  app.add_option("--heartbeat-interval", flags.heartbeat_seconds, "Seconds between an agent's reports")
      ->capture_default_str();
  app.add_option("--lease", flags.lease_seconds, "Seconds of silence after which a worker counts as unreachable")
      ->capture_default_str();
  app.add_option("--fence-after", flags.fence_seconds,
                 "Seconds of silence after which an agent kills its ranks and they may start elsewhere")
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
}

int Refuse(const absl::Status& status, int exit_code) {
  std::fprintf(stderr, "musterd: error: %s\n", std::string(status.message()).c_str());
  return exit_code;
}

absl::StatusOr<ServerOptions> ReadOptions(const Flags& flags) {
  ServerOptions options;
  absl::StatusOr<HostPort> listen = ParseHostPort(flags.listen, "--listen");
  if (!listen.ok()) return listen.status();
  options.listen = *listen;
  absl::StatusOr<HostPort> http = ParseHostPort(flags.http, "--http");
  if (!http.ok()) return http.status();
  options.http = *http;
  options.state_dir = flags.state_dir;
  options.leases.heartbeat_interval = absl::Seconds(flags.heartbeat_seconds);
  options.leases.lease = absl::Seconds(flags.lease_seconds);
  options.leases.fence_after = absl::Seconds(flags.fence_seconds);
  if (absl::Status status = CheckServerOptions(options); !status.ok()) return status;
  return options;
}

int Serve(const ServerOptions& options) {
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  absl::Mutex mutex;  // a signal may come before there is a coordinator
  std::unique_ptr<Coordinator> coordinator;
  ShutdownSignals signals([&](int, int count) {
    absl::MutexLock lock(&mutex);
    if (coordinator == nullptr || count > 1) _exit(0);
    coordinator->Stop();
  });
  absl::StatusOr<std::unique_ptr<Coordinator>> started = Coordinator::Start(options, MUSTER_VERSION, clock.get());
  if (!started.ok()) return Refuse(started.status(), kExitFailed);
  Coordinator* running = started->get();
  {
    absl::MutexLock lock(&mutex);
    coordinator = *std::move(started);
  }
  spdlog::info("musterd " MUSTER_VERSION " listens on {}, http on {}, state in {}",
               running->listen_address().ToString(), running->http_address().ToString(), options.state_dir);
  const absl::Status end = running->Wait();
  spdlog::info("stopping; ranks go on training");
  std::unique_ptr<Coordinator> ending;
  {
    absl::MutexLock lock(&mutex);
    ending = std::move(coordinator);
  }
  ending.reset();
  return end.ok() ? 0 : Refuse(end, kExitFailed);
}

int Main(int argc, char** argv) {
  CLI::App app("The coordinator: accepts jobs, places their ranks on workers, and keeps them alive.");
  Flags flags;
  DeclareFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  spdlog::set_default_logger(spdlog::stderr_color_mt("musterd"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  const absl::StatusOr<ServerOptions> options = ReadOptions(flags);
  if (!options.ok()) return Refuse(options.status(), kExitUsage);
  return Serve(*options);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
