#include "common/base/lease_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/file_descriptor.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

static_assert(std::atomic<int64_t>::is_always_lock_free, "the word is shared between processes");
constexpr int64_t kBytes = sizeof(std::atomic<int64_t>);

}  // namespace

absl::StatusOr<LeaseMapping> LeaseMapping::Map(const std::string& path, bool create) {
  FileDescriptor file(open(path.c_str(), (create ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoStatus(errno, "opening", path);
  if (create && ftruncate(file.get(), kBytes) != 0) return ErrnoStatus(errno, "sizing", path);
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "examining", path);
  if (info.st_size != kBytes) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is no lease file: it is not ", kBytes, " bytes long"));
  }
  const int protection = create ? PROT_READ | PROT_WRITE : PROT_READ;
  void* memory = mmap(nullptr, static_cast<size_t>(kBytes), protection, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "mapping", path);
  return LeaseMapping(static_cast<std::atomic<int64_t>*>(memory));
}

LeaseMapping::~LeaseMapping() {
  if (deadline_ != nullptr) munmap(deadline_, static_cast<size_t>(kBytes));
}

absl::StatusOr<LeaseStamp> LeaseStamp::Create(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(LeaseMapping mapping, LeaseMapping::Map(path, /*create=*/true));
  mapping.deadline_nanoseconds().store(0);
  return LeaseStamp(std::move(mapping));
}

void LeaseStamp::Set(absl::Duration since_boot) {
  mapping_.deadline_nanoseconds().store(since_boot == absl::InfiniteDuration() ? std::numeric_limits<int64_t>::max()
                                                                               : absl::ToInt64Nanoseconds(since_boot));
}

absl::StatusOr<LeaseReader> LeaseReader::Open(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(LeaseMapping mapping, LeaseMapping::Map(path, /*create=*/false));
  return LeaseReader(std::move(mapping));
}

absl::Status LeaseReader::Check(absl::Duration since_boot) const {
  const int64_t late = absl::ToInt64Nanoseconds(since_boot) - mapping_.deadline_nanoseconds().load();
  if (late <= 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the agent's lease passed ", absl::FormatDuration(absl::Nanoseconds(late)),
                                             " ago: its coordinator may have given this job to other ranks"));
}

}  // namespace muster
