// muster sample
#include "absl/strings/str_cat.h"
#include "client/checkpoint_argument.h"
#include "client/engine_program.h"
#include "client/verbs.h"
#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<ExitCode> RunVerb(Session& session, const SampleOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const std::string path,
                          ResolveCheckpoint(session, options.checkpoint, options.checkpoint_root));
  std::vector<std::string> arguments = {absl::StrCat("--from=", path),
                                        absl::StrCat("--prompt=", options.prompt),
                                        absl::StrCat("--tokens=", options.tokens),
                                        absl::StrCat("--temperature=", options.temperature),
                                        absl::StrCat("--top-k=", options.top_k),
                                        absl::StrCat("--seed=", options.seed)};
  if (!options.tokenizer.empty()) arguments.push_back(absl::StrCat("--tokenizer=", options.tokenizer));
  MUSTER_ASSIGN_OR_RETURN(const int exit_code, RunEngineProgram(arguments));
  return exit_code == 0 ? ExitCode::kOk : ExitCode::kFailed;  // it has said why
}

}  // namespace muster
