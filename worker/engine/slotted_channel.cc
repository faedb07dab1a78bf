#include "worker/engine/slotted_channel.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace muster {

SlottedChannel::SlottedChannel(std::unique_ptr<Communicator> group, Transfer::Direction direction,
                               std::vector<Tensor> slots)
    : group_(std::move(group)), direction_(direction), slots_(std::move(slots)), tickets_(slots_.size()) {
  MUSTER_CHECK(group_->size() == 2, group_->name(), " is of ", group_->size(), " ranks");
}

absl::Status SlottedChannel::Start(int64_t micro_batch) {
  const size_t slot = Slot(micro_batch);
  MUSTER_CHECK(!tickets_[slot].has_value(), group_->name(), ": slot ", slot, " is in use");
  const Transfer transfer{
      .direction = direction_, .peer = 1 - group_->rank(), .data = slots_[slot].data, .bytes = slots_[slot].bytes()};
  MUSTER_ASSIGN_OR_RETURN(tickets_[slot], group_->Exchange({&transfer, 1}));
  return absl::OkStatus();
}

absl::Status SlottedChannel::Wait(int64_t micro_batch) {
  std::optional<Ticket> ticket = std::exchange(tickets_[Slot(micro_batch)], std::nullopt);
  return ticket.has_value() ? group_->Wait(*ticket) : absl::OkStatus();
}

absl::Status SlottedChannel::WaitAll() {
  for (size_t slot = 0; slot < slots_.size(); ++slot) MUSTER_RETURN_IF_ERROR(Wait(static_cast<int64_t>(slot)));
  return absl::OkStatus();
}

}  // namespace muster
