// A program that makes the one allocation that its argument names, for the guard's test. Ends with 0 when it got the
// memory.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "common/base/allocation_hook.h"

namespace {

constexpr size_t kLarge = size_t{2} << 20;

// Touched through a volatile pointer, so that no compiler leaves the allocation out.
bool Touch(void* block) {
  if (block == nullptr || block == MAP_FAILED) return false;
  *static_cast<volatile char*>(block) = 1;
  return true;
}

void* MapPages(int protection) { return mmap(nullptr, kLarge, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

bool Allocate(const std::string& what) {
  if (what == "malloc") return Touch(malloc(kLarge));
  if (what == "calloc") return Touch(calloc(kLarge / 16, 16));
  if (what == "realloc") return Touch(realloc(malloc(100), kLarge));
  if (what == "aligned_alloc") return Touch(aligned_alloc(256, kLarge));
  if (what == "posix_memalign") {
    void* block = nullptr;
    return posix_memalign(&block, 256, kLarge) == 0 && Touch(block);
  }
  if (what == "new") return Touch(new char[kLarge]);
  if (what == "mmap") return Touch(MapPages(PROT_READ | PROT_WRITE));
  // What the guard lets pass.
  if (what == "small") return Touch(malloc(size_t{1} << 20));
  if (what == "reservation") return MapPages(PROT_NONE) != MAP_FAILED;
  if (what == "arena") {
    muster::NamedAllocation named("arena");
    return Touch(MapPages(PROT_READ | PROT_WRITE));
  }
  if (what == "unknown-name") {
    muster::NamedAllocation named("nobody-listed-me");
    return Touch(malloc(kLarge));
  }
  if (what == "after-scope") {
    { muster::NamedAllocation named("arena"); }
    return Touch(malloc(kLarge));
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 && Allocate(argv[1]) ? 0 : 1; }
