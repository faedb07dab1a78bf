#include "worker/kernels/cpu/isa.h"

namespace muster::kernels {

#if defined(__x86_64__)

namespace v2 {
extern const RowTable row_table;
}
namespace v3 {
extern const RowTable row_table;
}
namespace v4 {
extern const RowTable row_table;
}

// The levels are those of the x86-64 psABI. v2 is taken for granted: it is fifteen years old.
std::vector<const RowTable*> SupportedRowTables() {
  std::vector<const RowTable*> tables = {&v2::row_table};
  const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (has_v3) tables.push_back(&v3::row_table);
  const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (has_v4) tables.push_back(&v4::row_table);
  return tables;
}

#else

namespace native {
extern const RowTable row_table;
}

std::vector<const RowTable*> SupportedRowTables() { return {&native::row_table}; }

#endif

}  // namespace muster::kernels
