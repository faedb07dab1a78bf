#include "worker/agent/exit_cause.h"

#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/rpc/exit_kind.h"

namespace muster {
namespace {

constexpr absl::string_view kErrorPrefix = "muster-rank: error: ";

v1::ExitKind KindOfSignal(int signal, const ExitContext& context) {
  if (!context.killed_because.empty()) return v1::EXIT_KILLED;
  // It had not yet come to handle the signal: it stopped, with nothing to save.
  if (signal == SIGTERM && context.asked_to_stop) return v1::EXIT_STOPPED;
  if (signal == SIGKILL && context.kernel_killed_for_memory) return v1::EXIT_OUT_OF_MEMORY;
  return v1::EXIT_CRASHED;
}

// One sentence, the rank's own words first.
std::string Describe(const v1::RankExit& exit, const ExitContext& context) {
  if (exit.kind() == v1::EXIT_KILLED) return absl::StrCat("killed: ", context.killed_because);
  if (exit.kind() == v1::EXIT_COMPLETED) return "all steps are done";
  if (exit.kind() == v1::EXIT_STOPPED) return "stopped as asked";
  const std::string said = LastErrorLine(context.last_lines);
  if (!said.empty()) return said;
  if (!context.reported.message().empty()) return context.reported.message();
  if (exit.kind() == v1::EXIT_OUT_OF_MEMORY && exit.signal() != 0)
    return "killed by the kernel because the host ran out of memory";
  if (exit.signal() != 0) return absl::StrCat("ended by ", SignalName(exit.signal()));
  return absl::StrCat("exited with code ", exit.exit_code());
}

}  // namespace

v1::RankExit ExplainExit(const ChildEnd& end, const ExitContext& context) {
  v1::RankExit exit;
  exit.set_exit_code(end.exit_code);
  exit.set_signal(end.signal);
  exit.set_kind(end.signal != 0 ? KindOfSignal(end.signal, context) : ExitKindOf(end.exit_code));
  exit.set_message(Describe(exit, context));
  if (exit.kind() == v1::EXIT_REWIND && context.reported.has_rewind())
    *exit.mutable_rewind() = context.reported.rewind();
  for (const std::string& line : context.last_lines) exit.add_last_lines(line);
  return exit;
}

std::string LastErrorLine(const std::vector<std::string>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const size_t at = line->find(kErrorPrefix.data(), 0, kErrorPrefix.size());
    if (at != std::string::npos) return line->substr(at + kErrorPrefix.size());
  }
  return "";
}

std::string SignalName(int signal) { return absl::StrCat("signal ", signal, " (", strsignal(signal), ")"); }

}  // namespace muster
