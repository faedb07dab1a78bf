// Names a large allocation, so that the tests' allocation guard (tests/support/allocation_guard) can tell it from one
// that nobody planned. Without the guard this does nothing.
//
//   {
//     NamedAllocation named("arena");
//     block = mmap(nullptr, bytes, ...);
//   }
//
// The guard fails every single allocation above 1 MiB outside such a scope, unless its name list allows the caller's
// library. The name must be on the guard's list (tests/support/allocation_guard/allowances.txt), which says why each is
// outside the plan.
#pragma once

#include <dlfcn.h>

namespace muster {

// While it lives, allocations of this thread carry the name. Scopes nest; the innermost name counts.
class NamedAllocation {
 public:
  // `name` must outlive the scope: a string literal.
  explicit NamedAllocation(const char* name) : previous_(Exchange(name)) {}
  ~NamedAllocation() { Exchange(previous_); }
  NamedAllocation(const NamedAllocation&) = delete;
  NamedAllocation& operator=(const NamedAllocation&) = delete;

 private:
  // Looked up by name rather than linked as a weak symbol: a linker may bind an undefined weak symbol of an executable
  // to null for good, and then a preloaded library is never asked.
  static const char* Exchange(const char* name) {
    using Hook = const char* (*)(const char*);
    static const Hook hook = reinterpret_cast<Hook>(dlsym(RTLD_DEFAULT, "muster_allocation_name"));
    return hook == nullptr ? nullptr : hook(name);
  }

  const char* const previous_;
};

}  // namespace muster
