// muster: the command-line client. `muster --help` lists the verbs.
#include <cstdio>
#include <string>
#include <variant>

#include "client/command_line.h"
#include "client/session.h"
#include "client/verbs.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"

namespace muster {
namespace {

absl::StatusOr<ExitCode> Run(const Invocation& invocation) {
  MUSTER_RETURN_IF_ERROR(ParseHostPort(invocation.global.coordinator, "--coordinator").status());
  Session session(invocation.global);
  return std::visit([&session](const auto& options) { return RunVerb(session, options); }, invocation.verb);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const auto parsed = muster::ParseCommandLine(argc, argv);
  if (const auto* exit_code = std::get_if<muster::ExitCode>(&parsed)) return static_cast<int>(*exit_code);
  const auto result = muster::Run(std::get<muster::Invocation>(parsed));
  if (result.ok()) return static_cast<int>(*result);
  std::fprintf(stderr, "muster: %s\n", std::string(result.status().message()).c_str());
  return static_cast<int>(muster::ExitCodeOf(result.status()));
}
