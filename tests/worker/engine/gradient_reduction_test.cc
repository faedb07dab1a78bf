// The order of every sum is fixed: over the ranks of the tensor group that hold the same piece, then over the replicas.
#include "worker/engine/gradient_reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "tests/support/rank_harness.h"
#include "worker/kernels/context.h"

namespace muster {
namespace {

// Grouped queries with one key head, which both ranks of a tensor group hold.
ModelShape Model() {
  return {.family = ModelFamily::kLlama,
          .layers = 2,
          .hidden = 16,
          .heads = 4,
          .kv_heads = 1,
          .ffn = 24,
          .vocab = 37,
          .context = 8,
          .tied = false,
          .qkv_bias = true};
}

Layout TwoByTwo(bool sharded) {
  return {.data = 2, .tensor = 2, .micro_batch = 1, .sequence_length = 8, .optimizer_sharding = sharded};
}

// What a rank has accumulated: magnitudes over many orders, so that another order of a sum gives other bits.
float Accumulated(const RankCoordinate& rank, size_t gradient, int64_t element) {
  const int64_t mixed = (rank.tensor * 7 + rank.data * 13 + static_cast<int64_t>(gradient) * 31 + element * 97) % 211;
  return std::ldexp(1.0f + static_cast<float>(mixed) / 128, static_cast<int>(mixed % 23) - 11) *
         (mixed % 2 == 0 ? 1.0f : -1.0f);
}

float Expected(const ShardPiece& piece, int64_t tensor_rank, size_t gradient, int64_t element) {
  float over_replicas = 0;
  for (int64_t data = 0; data < 2; ++data) {
    const int64_t first = piece.partial_gradients ? piece.first_sharer : tensor_rank;
    const int64_t last = piece.partial_gradients ? piece.first_sharer + piece.sharers : tensor_rank + 1;
    float over_group = Accumulated({first, data, 0}, gradient, element);
    for (int64_t tensor = first + 1; tensor < last; ++tensor) {
      over_group += Accumulated({tensor, data, 0}, gradient, element);
    }
    over_replicas = data == 0 ? over_group : over_replicas + over_group;
  }
  return over_replicas;
}

// Counts the elements whose sum is not the expected one; every rank has all of them, or with a sharded optimizer its
// rows.
absl::Status ReduceAndCompare(Communicator& world, bool sharded) {
  const ModelShape model = Model();
  const Layout layout = TwoByTwo(sharded);
  const RankCoordinate mine = CoordinateOf(layout, world.rank());
  const std::vector<UnitRange> chunks = {{0, model.units()}};
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(0));
  MUSTER_ASSIGN_OR_RETURN(StageMemory memory,
                          StageMemory::Allocate(*device, BuildLedger(model, layout, chunks, world.rank())));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<KernelContext> kernels,
                          KernelContext::Create(*device, {.threads = 1}, memory.BindBytes("workspace/kernels")));
  MUSTER_ASSIGN_OR_RETURN(const RankGroups groups, SplitGroups(world, model, layout));
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  TraceRecorder recorder(*clock, *device);
  PhaseTimer timer(*clock, recorder);
  GradientReduction reduction({.shape = model, .layout = layout, .chunks = chunks, .coordinate = mine}, memory,
                              *kernels, groups, timer);

  const std::vector<GradientInfo> gradients = GradientsOf(model, chunks, layout.tensor, mine.tensor);
  for (size_t i = 0; i < gradients.size(); ++i) {
    float* values = memory.BindBytes(gradients[i].entry).as<float>();
    for (int64_t e = 0; e < gradients[i].shard.local_elements(); ++e) values[e] = Accumulated(mine, i, e);
  }
  for (int64_t unit = model.units() - 1; unit >= 0; --unit) MUSTER_RETURN_IF_ERROR(reduction.GradientsReady(unit));
  MUSTER_RETURN_IF_ERROR(reduction.Finish());

  for (size_t i = 0; i < gradients.size(); ++i) {
    const float* values = memory.BindBytes(gradients[i].entry).as<float>();
    for (const ShardPiece& piece : gradients[i].shard.pieces) {
      const RowBlock rows = sharded ? ReplicaRows(piece.rows(), layout.data, mine.data) : RowBlock{0, piece.rows()};
      int64_t wrong = 0;
      for (int64_t e = rows.first * piece.row_elements(); e < rows.last * piece.row_elements(); ++e) {
        const int64_t element = piece.local_first + e;
        if (values[element] != Expected(piece, mine.tensor, i, element)) ++wrong;
      }
      EXPECT_EQ(wrong, 0) << gradients[i].entry << " of rank " << world.rank();
    }
  }
  return absl::OkStatus();
}

TEST(GradientReduction, AddsPiecesThatATensorGroupSharesBeforeItAddsReplicas) {
  EXPECT_TRUE(AllOk(RunRanks(4, [](Communicator& world) { return ReduceAndCompare(world, /*sharded=*/false); })));
}

TEST(GradientReduction, LeavesTheSumsOfItsRowsOnEachReplicaOfAShardedOptimizer) {
  EXPECT_TRUE(AllOk(RunRanks(4, [](Communicator& world) { return ReduceAndCompare(world, /*sharded=*/true); })));
}

TEST(SumWithKernels, AddsInOrderIntoAnyOfTheParts) {
  const std::unique_ptr<Device> device = OpenDevice(0).value();
  std::vector<double> workspace(static_cast<size_t>(KernelWorkspaceBytes(1)) / sizeof(double));
  const Tensor workspace_bytes(workspace.data(), DType::kU8, {KernelWorkspaceBytes(1)});
  const auto kernels = KernelContext::Create(*device, {.threads = 1}, workspace_bytes).value();
  constexpr int64_t kElements = 300'000;  // more than a block
  for (size_t in_place = 0; in_place < 4; ++in_place) {
    std::vector<std::vector<float>> parts(4, std::vector<float>(kElements));
    std::vector<float*> pointers;
    for (size_t part = 0; part < parts.size(); ++part) {
      for (int64_t i = 0; i < kElements; ++i) {
        parts[part][static_cast<size_t>(i)] = Accumulated({0, 0, 0}, part, i);
      }
      pointers.push_back(parts[part].data());
    }
    std::vector<float> expected(kElements);
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + parts[3][i];
    }
    SumWithKernels (*kernels)(pointers, pointers[in_place], kElements);
    EXPECT_EQ(parts[in_place], expected) << in_place;
  }
}

}  // namespace
}  // namespace muster
