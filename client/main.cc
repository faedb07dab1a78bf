// muster: the command-line client. `muster --help` lists the verbs.
#include <cstdio>
#include <string>
#include <variant>

#include "client/command_line.h"
#include "client/session.h"
#include "client/verbs.h"

int main(int argc, char** argv) {
  using namespace muster;
  const auto parsed = ParseCommandLine(argc, argv);
  if (const auto* exit_code = std::get_if<ExitCode>(&parsed)) return static_cast<int>(*exit_code);
  const auto& invocation = std::get<Invocation>(parsed);
  Session session(invocation.global);
  const absl::StatusOr<ExitCode> result =
      std::visit([&session](const auto& options) { return RunVerb(session, options); }, invocation.verb);
  if (result.ok()) return static_cast<int>(*result);
  std::fprintf(stderr, "muster: %s\n", std::string(result.status().message()).c_str());
  return static_cast<int>(ExitCodeOf(result.status()));
}
