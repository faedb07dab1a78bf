// The tensor group of a rank on a communicator: gathers and sums rows for the units (worker/model/tensor_group.h), and
// counts the time as exposed communication.
//
// Owned by the rank's engine, for the trainer's thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "worker/comm/communicator.h"
#include "worker/engine/phase_timer.h"
#include "worker/kernels/context.h"
#include "worker/model/tensor_group.h"
#include "worker/tensor/view.h"

namespace muster {

class TensorExchange : public TensorGroup {
 public:
  // `parts`: as many bytes as the largest tensor whose rows are summed; overwritten. All outlive the exchange.
  TensorExchange(Communicator& group, KernelContext& kernels, PhaseTimer& timer, const Tensor& parts);

  int64_t rank() const override { return group_.rank(); }
  int64_t size() const override { return group_.size(); }
  absl::Status GatherRows(const Tensor& local, const Tensor& whole) override;
  absl::Status ReduceScatterRows(const Tensor& partial, const Tensor& local) override;

 private:
  // Sends to and receives from every other rank; `to` and `from` say which rows.
  template <typename RowsTo, typename RowsFrom>
  absl::Status ExchangeRows(const RowsTo& to, const RowsFrom& from);

  Communicator& group_;
  KernelContext& kernels_;
  PhaseTimer& timer_;
  const Tensor parts_;
};

}  // namespace muster
