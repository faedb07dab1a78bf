// One direction of one pipeline edge: the tensors of micro-batches 0, 1, 2, ... of a step, each from or into one of a
// few slots.
//
// Owned by the pipeline, for the trainer's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "worker/comm/communicator.h"
#include "worker/tensor/view.h"

namespace muster {

class SlottedChannel {
 public:
  // `group` is of two ranks and has no other user. Micro-batch i uses slots[i mod size].
  SlottedChannel(std::unique_ptr<Communicator> group, Transfer::Direction direction, std::vector<Tensor> slots);

  // Starts sending or receiving. REQUIRES: the transfer that used the slot before has been waited for.
  absl::Status Start(int64_t micro_batch);

  // Until the slot of that micro-batch is free of transfers; at once when none was started.
  absl::Status Wait(int64_t micro_batch);

  // Until all slots are.
  absl::Status WaitAll();

 private:
  size_t Slot(int64_t micro_batch) const { return static_cast<size_t>(micro_batch) % slots_.size(); }

  const std::unique_ptr<Communicator> group_;
  const Transfer::Direction direction_;
  const std::vector<Tensor> slots_;
  std::vector<std::optional<Ticket>> tickets_;  // by slot
};

}  // namespace muster
