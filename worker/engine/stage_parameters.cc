#include "worker/engine/stage_parameters.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/plan/ledger.h"
#include "worker/kernels/kernels.h"

namespace muster {
namespace {

constexpr int64_t kPieceElements = 16384;  // 64 KiB on the host at a time

Tensor Run(const Tensor& flat, int64_t first, int64_t elements) {
  if (flat.data == nullptr) return {};
  return Tensor(flat.as<char>() + first * SizeOf(flat.dtype), flat.dtype, {elements});
}

// Binds one parameter: all its memory, and then blocks of it.
class ParameterBinder {
 public:
  ParameterBinder(StageMemory& memory, const StageParametersOptions& options, StageParameter& parameter,
                  const std::string& gradient_entry)
      : memory_(memory), options_(options), parameter_(parameter) {
    const std::string& name = parameter.info.name;
    parameter.value = Bind(absl::StrCat("parameter/", name), options.compute);
    parameter.gradient = Bind(gradient_entry, DType::kF32);
    master_ = Bind(absl::StrCat("optimizer/master/", name), DType::kF32);
    first_ = Bind(absl::StrCat("optimizer/first/", name), DType::kF32);
    second_ = Bind(absl::StrCat("optimizer/second/", name), DType::kF32);
  }

  // Rows [block.first, block.last) of a piece. `state_first`: where their optimizer state begins in its tensors.
  StateBlock Block(const ShardPiece& piece, RowBlock block, int64_t state_first) const {
    const int64_t first = piece.local_first + block.first * piece.row_elements();
    const int64_t elements = (block.last - block.first) * piece.row_elements();
    StateBlock result;
    result.box = {.offset = piece.offset, .dims = piece.dims};
    result.box.offset[0] += block.first;
    result.box.dims[0] = block.last - block.first;
    result.value = Run(parameter_.value, first, elements);
    result.gradient = Run(parameter_.gradient, first, elements);
    result.master = options_.compute == DType::kF32 ? result.value : Run(master_, state_first, elements);
    result.first = Run(first_, state_first, elements);
    result.second = Run(second_, state_first, elements);
    return result;
  }

 private:
  // All of an entry, as a flat tensor; empty where the ledger has no such entry.
  Tensor Bind(const std::string& entry, DType dtype) {
    if (!memory_.has(entry)) return {};
    const Tensor bytes = memory_.BindBytes(entry);
    return Tensor(bytes.data, dtype, {bytes.elements() / SizeOf(dtype)});
  }

  StageMemory& memory_;
  const StageParametersOptions& options_;
  StageParameter& parameter_;
  Tensor master_, first_, second_;
};

void AddBlocks(const StageParametersOptions& options, const ParameterBinder& binder, bool copy,
               StageParameter& parameter) {
  const Layout& layout = options.layout;
  int64_t packed = 0;  // elements of sharded state bound so far
  for (const ShardPiece& piece : parameter.shard.pieces) {
    const RowBlock mine = ReplicaRows(piece.rows(), layout.data, options.coordinate.data);
    const int64_t elements = (mine.last - mine.first) * piece.row_elements();
    const int64_t state_first =
        layout.optimizer_sharding ? packed : piece.local_first + mine.first * piece.row_elements();
    if (layout.optimizer_sharding) {
      if (elements > 0) parameter.updated.push_back(binder.Block(piece, mine, state_first));
    } else {
      parameter.updated.push_back(binder.Block(piece, {0, piece.rows()}, piece.local_first));
    }
    const bool first_sharer = piece.first_sharer == options.coordinate.tensor;
    if (!copy && first_sharer && elements > 0) {
      parameter.answered_for.push_back(binder.Block(piece, mine, state_first));
    }
    packed += elements;
  }
}

}  // namespace

std::vector<StageParameter> BindStageParameters(StageMemory& memory, const ModelShape& shape,
                                                const StageParametersOptions& options) {
  const std::vector<ParameterInfo> model = Parameters(shape);
  const bool has_embedding = options.chunks.front().first == 0;
  std::vector<StageParameter> result;
  for (ParameterInfo& info : ChunkParameters(shape, options.chunks)) {
    StageParameter parameter;
    const auto in_model =
        std::find_if(model.begin(), model.end(), [&](const ParameterInfo& other) { return other.name == info.name; });
    parameter.model_index = static_cast<size_t>(in_model - model.begin());
    parameter.shard = ShardOnTensorRank(shape, info, options.layout.tensor, options.coordinate.tensor);
    parameter.info = std::move(info);
    const bool copy = parameter.info.unit == 0 && !has_embedding;  // of a tied weight, beside the head
    const ParameterBinder binder(
        memory, options, parameter,
        copy ? std::string(kTiedHeadGradient) : absl::StrCat("gradient/", parameter.info.name));
    AddBlocks(options, binder, copy, parameter);
    result.push_back(std::move(parameter));
  }
  return result;
}

absl::Status InitializeParameters(KernelContext& kernels, const std::vector<StageParameter>& parameters,
                                  const ValuesOf& values_of) {
  std::vector<float> buffer(kPieceElements);
  for (const StageParameter& parameter : parameters) {
    for (const StateBlock& block : parameter.updated) {
      const auto set_run = [&](int64_t in_tensor, int64_t in_box, int64_t elements) -> absl::Status {
        for (int64_t first = 0; first < elements; first += kPieceElements) {
          const absl::Span<float> values(buffer.data(),
                                         static_cast<size_t>(std::min(kPieceElements, elements - first)));
          MUSTER_RETURN_IF_ERROR(values_of(parameter.info, in_tensor + first, values));
          kernels.device().CopyToDevice(block.master.as<float>() + in_box + first, values.data(),
                                        static_cast<int64_t>(values.size() * sizeof(float)));
          // The next piece overwrites this one on the host.
          MUSTER_RETURN_IF_ERROR(kernels.device().Synchronize());
        }
        return absl::OkStatus();
      };
      MUSTER_RETURN_IF_ERROR(ForEachRun(block.box, parameter.info.dims, set_run));
      if (block.first.data != nullptr) kernels::Zero(kernels, block.first);
      if (block.second.data != nullptr) kernels::Zero(kernels, block.second);
    }
  }
  return absl::OkStatus();
}

void CastMastersToValues(KernelContext& kernels, const std::vector<StageParameter>& parameters) {
  for (const StageParameter& parameter : parameters) {
    for (const StateBlock& block : parameter.updated) {
      if (block.value.dtype != DType::kF32) kernels::Cast(kernels, block.master, block.value);
    }
  }
}

absl::Status GatherReplicaRows(Communicator& group, const std::vector<StageParameter>& parameters) {
  std::vector<Ticket> tickets;
  for (const StageParameter& parameter : parameters) {
    std::vector<Transfer> transfers;
    for (const ShardPiece& piece : parameter.shard.pieces) {
      const auto rows_of = [&](int replica) {
        const RowBlock block = ReplicaRows(piece.rows(), group.size(), replica);
        return Run(parameter.value, piece.local_first + block.first * piece.row_elements(),
                   (block.last - block.first) * piece.row_elements());
      };
      const Tensor mine = rows_of(group.rank());
      for (int peer = 0; peer < group.size(); ++peer) {
        if (peer == group.rank()) continue;
        const Tensor theirs = rows_of(peer);
        const auto add = [&](Transfer::Direction direction, const Tensor& rows) {
          if (rows.elements() > 0) transfers.push_back({direction, peer, rows.data, rows.bytes()});
        };
        add(Transfer::Direction::kReceive, theirs);
        add(Transfer::Direction::kSend, mine);
      }
    }
    MUSTER_ASSIGN_OR_RETURN(const Ticket ticket, group.Exchange(transfers));
    tickets.push_back(ticket);
  }
  for (const Ticket ticket : tickets) MUSTER_RETURN_IF_ERROR(group.Wait(ticket));
  return absl::OkStatus();
}

absl::Status ForEachRun(const Box& box, absl::Span<const int64_t> global_dims,
                        absl::FunctionRef<absl::Status(int64_t in_tensor, int64_t in_box, int64_t elements)> visit) {
  MUSTER_CHECK(global_dims.size() <= 2, "a tensor of ", global_dims.size(), " dimensions");
  if (global_dims.size() == 1) return visit(box.offset[0], 0, box.dims[0]);
  const int64_t columns = global_dims[1];
  if (box.dims[1] == columns) return visit(box.offset[0] * columns, 0, box.elements());
  for (int64_t row = 0; row < box.dims[0]; ++row) {
    MUSTER_RETURN_IF_ERROR(visit((box.offset[0] + row) * columns + box.offset[1], row * box.dims[1], box.dims[1]));
  }
  return absl::OkStatus();
}

}  // namespace muster
