// Preloaded into a process, watches its single allocations above 1 MiB: malloc and its kin, operator new (which calls
// them), and anonymous mmap. README.md says what for. Off unless one of the first two is set:
//
//   MUSTER_ALLOCATION_REPORT      file to which findings and allowed allocations are appended, one a line (format:
//   Record) MUSTER_ALLOCATION_ENFORCE     1: a finding ends the process with a message MUSTER_ALLOCATION_ALLOWANCES
//   file of allowances (format: allowances.txt) MUSTER_ALLOCATION_PROGRAM     only in the program of this name; others
//   of the same process tree go unwatched
//
// Nothing here may allocate on the way of an allocation, so: no C++ library, no Abseil, fixed buffers. Needs glibc.

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {

constexpr size_t kLimitBytes = size_t{1} << 20;
constexpr int kMaxAllowances = 64;
constexpr int kMaxFrames = 24;

struct Allowance {
  bool by_name = false;  // else by frame
  char pattern[128] = "";
  size_t max_bytes = 0;
};

// Written before main by Configure, constant afterwards.
bool enabled = false;
bool enforce = false;
const char* report_path = nullptr;
Allowance allowances[kMaxAllowances];
int allowance_count = 0;

// Accessed on the way of malloc, so never by a call that may allocate it.
thread_local const char* scope_name __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;  // of Check: what it calls is not checked

void ReadAllowances(const char* path) {
  FILE* file = fopen(path, "r");
  if (file == nullptr) {
    fprintf(stderr, "allocation guard: cannot read %s: %s\n", path, strerror(errno));
    abort();
  }
  char line[512];
  for (int number = 1; fgets(line, sizeof(line), file) != nullptr; ++number) {
    char kind[16] = "", pattern[128] = "", bytes[32] = "";
    const int fields = sscanf(line, "%15s %127s %31s", kind, pattern, bytes);
    if (fields <= 0 || kind[0] == '#') continue;
    const bool by_name = strcmp(kind, "name") == 0;
    char* end = nullptr;
    const size_t max_bytes = strcmp(bytes, "-") == 0 ? SIZE_MAX : strtoull(bytes, &end, 10);
    if (fields < 3 || (!by_name && strcmp(kind, "frame") != 0) || (end != nullptr && *end != 0) ||
        allowance_count == kMaxAllowances) {
      fprintf(stderr, "allocation guard: %s:%d is not `name|frame PATTERN MAX-BYTES why`, or one too many\n", path,
              number);
      abort();
    }
    Allowance& allowance = allowances[allowance_count++];
    allowance.by_name = by_name;
    memcpy(allowance.pattern, pattern, sizeof(pattern));
    allowance.max_bytes = max_bytes;
  }
  fclose(file);
}

__attribute__((constructor)) void Configure() {
  const char* program = getenv("MUSTER_ALLOCATION_PROGRAM");
  if (program != nullptr && strcmp(program, program_invocation_short_name) != 0) return;
  report_path = getenv("MUSTER_ALLOCATION_REPORT");
  const char* enforce_value = getenv("MUSTER_ALLOCATION_ENFORCE");
  enforce = enforce_value != nullptr && strcmp(enforce_value, "1") == 0;
  if (report_path == nullptr && !enforce) return;
  const char* allowances_path = getenv("MUSTER_ALLOCATION_ALLOWANCES");
  if (allowances_path != nullptr) ReadAllowances(allowances_path);
  void* frame = nullptr;
  backtrace(&frame, 1);  // the first call loads a library; not on the way of an allocation
  enabled = true;
}

// One line of the report, of tab-separated fields.
class Line {
 public:
  void Add(const char* text) {
    const size_t room = sizeof(text_) - 2 - length_;
    const size_t count = strlen(text) < room ? strlen(text) : room;
    memcpy(text_ + length_, text, count);
    length_ += count;
  }
  void Add(size_t number, unsigned base = 10) {
    char digits[32];
    char* first = digits + sizeof(digits);
    *--first = 0;
    do {
      *--first = "0123456789abcdef"[number % base];
      number /= base;
    } while (number > 0);
    Add(first);
  }
  // "library(function+0x10)" or "program+0x1234", which addr2line understands.
  void AddFrame(void* address) {
    Dl_info info{};
    if (dladdr(address, &info) == 0) {
      Add("?");
      return;
    }
    const char* slash = strrchr(info.dli_fname, '/');
    Add(slash == nullptr ? info.dli_fname : slash + 1);
    const bool named = info.dli_sname != nullptr;
    Add(named ? "(" : "+0x");
    if (named) {
      Add(info.dli_sname);
      Add(")");
    } else {
      Add(static_cast<size_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_fbase)), 16);
    }
  }
  // One write, so that lines of several processes do not mix.
  void Write(int descriptor) {
    text_[length_] = '\n';
    if (write(descriptor, text_, length_ + 1) < 0) abort();
  }

 private:
  char text_[4096];
  size_t length_ = 0;
};

bool OfLibrary(const Dl_info& info, const char* library) { return strstr(info.dli_fname, library) != nullptr; }

// The first frame that is not an allocator's: not ours, not libc's, not libstdc++'s.
int CallerFrame(void* const* frames, int count) {
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(&CallerFrame), &own);
  for (int i = 0; i < count; ++i) {
    Dl_info info{};
    if (dladdr(frames[i], &info) == 0) return i;
    if (info.dli_fbase == own.dli_fbase || OfLibrary(info, "/libc.so") || OfLibrary(info, "/libstdc++.so")) continue;
    return i;
  }
  return count - 1;
}

const Allowance* FindAllowance(size_t bytes, void* caller) {
  Dl_info info{};
  const bool known = dladdr(caller, &info) != 0;
  for (int i = 0; i < allowance_count; ++i) {
    const Allowance& allowance = allowances[i];
    if (bytes > allowance.max_bytes) continue;
    if (allowance.by_name) {
      if (scope_name != nullptr && strcmp(scope_name, allowance.pattern) == 0) return &allowance;
    } else if (known) {
      if (strstr(info.dli_fname, allowance.pattern) != nullptr) return &allowance;
      if (info.dli_sname != nullptr && strstr(info.dli_sname, allowance.pattern) != nullptr) return &allowance;
    }
  }
  return nullptr;
}

// FINDING|ALLOWED, program, process, function, bytes, allowance or the scope's name or -, frames from the caller
// outwards
void Record(const char* function, size_t bytes, const Allowance* allowance, void* const* frames, int count) {
  Line line;
  line.Add(allowance != nullptr ? "ALLOWED\t" : "FINDING\t");
  line.Add(program_invocation_short_name);
  line.Add("\t");
  line.Add(static_cast<size_t>(getpid()));
  line.Add("\t");
  line.Add(function);
  line.Add("\t");
  line.Add(bytes);
  line.Add("\t");
  line.Add(allowance != nullptr ? allowance->pattern : scope_name != nullptr ? scope_name : "-");
  line.Add("\t");
  for (int i = CallerFrame(frames, count); i < count; ++i) {
    line.AddFrame(frames[i]);
    line.Add(" ");
  }
  if (report_path != nullptr) {
    const int file = open(report_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) abort();
    line.Write(file);
    close(file);
  }
  if (enforce && allowance == nullptr) {
    line.Write(STDERR_FILENO);
    abort();
  }
}

void CheckLarge(const char* function, size_t bytes) {
  inside = true;
  const int previous_errno = errno;
  void* frames[kMaxFrames];
  const int count = backtrace(frames, kMaxFrames);
  if (count > 0) Record(function, bytes, FindAllowance(bytes, frames[CallerFrame(frames, count)]), frames, count);
  errno = previous_errno;
  inside = false;
}

inline void Check(const char* function, size_t bytes) {
  if (__builtin_expect(bytes > kLimitBytes && enabled && !inside, 0)) CheckLarge(function, bytes);
}

void* MapMemory(const char* function, void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  // A mapping that nothing may touch is a reservation of addresses, not memory.
  if ((flags & MAP_ANONYMOUS) != 0 && protection != PROT_NONE) Check(function, bytes);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

}  // namespace

extern "C" {

// The hook of common/base/allocation_hook.h: names this thread's allocations, returns the name before.
__attribute__((visibility("default"))) const char* muster_allocation_name(const char* name) {
  const char* previous = scope_name;
  scope_name = name;
  return previous;
}

void* malloc(size_t bytes) noexcept {
  Check("malloc", bytes);
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) noexcept {
  size_t total = 0;
  if (!__builtin_mul_overflow(count, bytes, &total)) Check("calloc", total);
  return __libc_calloc(count, bytes);
}

void* realloc(void* block, size_t bytes) noexcept {
  Check("realloc", bytes);
  return __libc_realloc(block, bytes);
}

void* reallocarray(void* block, size_t count, size_t bytes) noexcept {
  size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return nullptr;
  }
  Check("reallocarray", total);
  return __libc_realloc(block, total);
}

void* memalign(size_t alignment, size_t bytes) noexcept {
  Check("memalign", bytes);
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  Check("aligned_alloc", bytes);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  Check("posix_memalign", bytes);
  void* aligned = __libc_memalign(alignment, bytes);
  if (aligned == nullptr) return ENOMEM;
  *block = aligned;
  return 0;
}

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  return MapMemory("mmap", address, bytes, protection, flags, file, offset);
}

void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return MapMemory("mmap64", address, bytes, protection, flags, file, offset);
}

}  // extern "C"
