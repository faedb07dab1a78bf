// Every row kernel for one instruction set. Compiled several times, with MUSTER_ISA (a name) and MUSTER_ISA_TEXT:
// CMakeLists.txt.
//
// The linker keeps one copy of an inline function of the standard library, and it might be this file's, made with
// instructions that the machine lacks. Hence none are called here.
#include "worker/kernels/cpu/row.h"
#include "worker/kernels/cpu/row_table.h"

namespace muster::kernels::MUSTER_ISA {
namespace {

template <typename Kernel>
void Run(const void* kernel_in, const RowBox& box) {
  const Kernel kernel = *static_cast<const Kernel*>(kernel_in);  // a local copy: what the rows write cannot change it
  const CpuRow row(box.cols, box.first_col, box.last_col);
  for (int64_t r = box.first_row; r < box.last_row; ++r) kernel(row, r);
}

template <typename... Kernels>
constexpr RowTable MakeTable(KernelList<Kernels...>) {
  return RowTable{MUSTER_ISA_TEXT, {&Run<Kernels>...}};
}

}  // namespace

extern const RowTable row_table;
constexpr RowTable row_table = MakeTable(AllRowKernels{});

}  // namespace muster::kernels::MUSTER_ISA
