// Which instruction sets the row kernels were compiled for, and which of them this machine runs.
#pragma once

#include <vector>

#include "worker/kernels/cpu/row_table.h"

namespace muster::kernels {

// Those that this machine runs, the best last. They give the same bits (tests/worker/kernels/isa_test.cc).
std::vector<const RowTable*> SupportedRowTables();

}  // namespace muster::kernels
