#include "worker/engine/tied_embedding.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/ledger.h"
#include "worker/kernels/kernels.h"

namespace muster {

TiedEmbedding::TiedEmbedding(StageMemory& memory, KernelContext& kernels, Communicator* group, ElementRun part)
    : kernels_(kernels), group_(group) {
  if (part.elements == 0) return;
  const std::string embedding = absl::StrCat("gradient/", kTiedParameter);
  const auto bind = [&](const std::string& entry, int64_t first) {
    return Tensor(memory.BindBytes(entry).as<float>() + first, DType::kF32, {part.elements});
  };
  if (group_ != nullptr) {
    mine_ = bind(memory.has(embedding) ? embedding : kTiedHeadGradient, part.first);
    other_ = bind(kTiedPeerGradient, 0);
  } else if (memory.has(kTiedHeadGradient)) {
    mine_ = bind(embedding, part.first);
    other_ = bind(kTiedHeadGradient, part.first);
  }
}

absl::Status TiedEmbedding::AddGradients() {
  if (mine_.data == nullptr) return absl::OkStatus();
  if (group_ != nullptr) {
    const int peer = 1 - group_->rank();
    const std::array<Transfer, 2> transfers = {
        Transfer{.direction = Transfer::Direction::kSend, .peer = peer, .data = mine_.data, .bytes = mine_.bytes()},
        Transfer{
            .direction = Transfer::Direction::kReceive, .peer = peer, .data = other_.data, .bytes = other_.bytes()}};
    MUSTER_ASSIGN_OR_RETURN(const Ticket ticket, group_->Exchange(transfers));
    MUSTER_RETURN_IF_ERROR(group_->Wait(ticket));
  }
  // A sum of two has the same bits in either order, so both stages may add the other's to their own.
  kernels::Add(kernels_, mine_, other_, mine_);
  return absl::OkStatus();
}

}  // namespace muster
