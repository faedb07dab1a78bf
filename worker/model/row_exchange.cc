#include "worker/model/row_exchange.h"

#include "common/base/status_macros.h"
#include "common/plan/ledger.h"

namespace muster {

RowExchange::RowExchange(const UnitContext& context) : group_(context.tensor) {
  if (group_ == nullptr) return;
  whole_ = context.memory.Bind(kTensorRows, context.compute, {context.rows(), context.shape.hidden});
}

absl::StatusOr<Tensor> RowExchange::Gather(const Tensor& local) const {
  if (group_ == nullptr) return local;
  MUSTER_RETURN_IF_ERROR(group_->GatherRows(local, whole_));
  return whole_;
}

Tensor RowExchange::PartialFor(const Tensor& local) const { return group_ == nullptr ? local : whole_; }

absl::Status RowExchange::Reduce(const Tensor& partial, const Tensor& local) const {
  return group_ == nullptr ? absl::OkStatus() : group_->ReduceScatterRows(partial, local);
}

}  // namespace muster
