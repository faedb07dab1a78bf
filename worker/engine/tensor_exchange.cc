#include "worker/engine/tensor_exchange.h"

#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/kernels/kernels.h"

namespace muster {

TensorExchange::TensorExchange(Communicator& group, KernelContext& kernels, PhaseTimer& timer, const Tensor& parts)
    : group_(group), kernels_(kernels), timer_(timer), parts_(parts) {}

template <typename RowsTo, typename RowsFrom>
absl::Status TensorExchange::ExchangeRows(const RowsTo& to, const RowsFrom& from) {
  std::vector<Transfer> transfers;
  for (int peer = 0; peer < group_.size(); ++peer) {
    if (peer == group_.rank()) continue;
    const Tensor theirs = from(peer);
    const Tensor ours = to(peer);
    transfers.push_back({Transfer::Direction::kReceive, peer, theirs.data, theirs.bytes()});
    transfers.push_back({Transfer::Direction::kSend, peer, ours.data, ours.bytes()});
  }
  MUSTER_ASSIGN_OR_RETURN(const Ticket ticket, group_.Exchange(transfers));
  return group_.Wait(ticket);
}

absl::Status TensorExchange::GatherRows(const Tensor& local, const Tensor& whole) {
  const PhaseScope scope(timer_, Phase::kCommExposed);
  const int64_t rows = local.rows();
  MUSTER_CHECK(whole.rows() == size() * rows && whole.cols() == local.cols(), whole.rows(), " rows of ", size(), " x ",
               rows);
  kernels::Copy(kernels_, local, whole.slice(rank() * rows, rows));
  return ExchangeRows([&](int /*peer*/) { return local; }, [&](int peer) { return whole.slice(peer * rows, rows); });
}

absl::Status TensorExchange::ReduceScatterRows(const Tensor& partial, const Tensor& local) {
  const PhaseScope scope(timer_, Phase::kCommExposed);
  const int64_t rows = local.rows();
  MUSTER_CHECK(partial.rows() == size() * rows && partial.cols() == local.cols(), partial.rows(), " rows of ", size(),
               " x ", rows);
  MUSTER_CHECK(partial.bytes() <= parts_.bytes(), "parts of ", partial.bytes(), " bytes in ", parts_.bytes());
  const Tensor parts(parts_.data, local.dtype, {size(), local.elements()});
  kernels::Copy(kernels_, partial.slice(rank() * rows, rows),
                Tensor(parts.slice(rank(), 1).data, local.dtype, {rows, local.cols()}));
  MUSTER_RETURN_IF_ERROR(ExchangeRows([&](int peer) { return partial.slice(peer * rows, rows); },
                                      [&](int peer) { return parts.slice(peer, 1); }));
  kernels::SumInOrder(kernels_, parts, Tensor(local.data, local.dtype, {local.elements()}));
  return absl::OkStatus();
}

}  // namespace muster
