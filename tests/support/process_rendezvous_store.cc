#include "tests/support/process_rendezvous_store.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace muster {
namespace {

struct Entry {
  char key[64];
  char value[8192];
  size_t bytes;
};
constexpr size_t kEntries = 32;

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

struct ProcessRendezvousStore::Shared {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  size_t entries = 0;
  Entry entry[kEntries];

  const Entry* Find(absl::string_view key) const {
    for (size_t i = 0; i < entries; ++i) {
      if (key == entry[i].key) return &entry[i];
    }
    return nullptr;
  }
};

ProcessRendezvousStore::ProcessRendezvousStore()
    : shared_(static_cast<Shared*>(
          mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
  MUSTER_CHECK(shared_ != MAP_FAILED);
  shared_->entries = 0;
  pthread_mutexattr_t mutex_attributes;
  pthread_mutexattr_init(&mutex_attributes);
  pthread_mutexattr_setpshared(&mutex_attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared_->mutex, &mutex_attributes);
  pthread_condattr_t condition_attributes;
  pthread_condattr_init(&condition_attributes);
  pthread_condattr_setpshared(&condition_attributes, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setclock(&condition_attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&shared_->changed, &condition_attributes);
}

ProcessRendezvousStore::~ProcessRendezvousStore() { munmap(shared_, sizeof(Shared)); }

absl::Status ProcessRendezvousStore::Set(absl::string_view key, absl::string_view value) {
  MUSTER_CHECK(key.size() < sizeof(Entry::key) && value.size() <= sizeof(Entry::value));
  Lock lock(shared_->mutex);
  if (const Entry* existing = shared_->Find(key)) {
    if (absl::string_view(existing->value, existing->bytes) == value) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat("key ", key, " holds another value"));
  }
  MUSTER_CHECK(shared_->entries < kEntries);
  Entry& entry = shared_->entry[shared_->entries++];
  std::memcpy(entry.key, key.data(), key.size());
  entry.key[key.size()] = 0;
  std::memcpy(entry.value, value.data(), value.size());
  entry.bytes = value.size();
  pthread_cond_broadcast(&shared_->changed);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ProcessRendezvousStore::Get(absl::string_view key, absl::Duration timeout) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const timespec deadline = absl::ToTimespec(absl::DurationFromTimespec(now) + timeout);
  Lock lock(shared_->mutex);
  for (;;) {
    if (const Entry* entry = shared_->Find(key)) return std::string(entry->value, entry->bytes);
    if (pthread_cond_timedwait(&shared_->changed, &shared_->mutex, &deadline) == ETIMEDOUT) {
      return absl::DeadlineExceededError(
          absl::StrCat("key ", key, " was not set within ", absl::FormatDuration(timeout)));
    }
  }
}

}  // namespace muster
