// The arguments of `muster`, read with CLI11.
#pragma once

#include <variant>

#include "client/exit_code.h"
#include "client/options.h"

namespace muster {

// What to do, or, where help, the version or an error was printed already, the code to exit with.
std::variant<Invocation, ExitCode> ParseCommandLine(int argc, char** argv);

}  // namespace muster
