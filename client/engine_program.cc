#include "client/engine_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace muster {
namespace {

constexpr char kProgram[] = "muster-generate";

}  // namespace

absl::StatusOr<int> RunEngineProgram(const std::vector<std::string>& arguments) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string program = (self.parent_path() / kProgram).string();
  if (!PathExists(program)) {
    return absl::NotFoundError(absl::StrCat(program, " is not there: ", kProgram, " belongs beside muster"));
  }
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), program);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environ);
  if (error != 0) return absl::UnavailableError(absl::StrCat("starting ", program, ": ", std::strerror(error)));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "waiting for", program);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return absl::AbortedError(absl::StrCat(kProgram, " was ended by signal ", WTERMSIG(status)));
}

}  // namespace muster
