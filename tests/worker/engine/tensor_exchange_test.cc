#include "worker/engine/tensor_exchange.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "tests/support/rank_harness.h"
#include "tests/worker/model/model_harness.h"
#include "worker/engine/trace_recorder.h"
#include "worker/tensor/cpu_device.h"

namespace muster {
namespace {

constexpr int kRanks = 3;

// Runs `body` on each rank of a tensor group of kRanks.
void OnEachRank(const std::function<absl::Status(TensorGroup&)>& body) {
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  EXPECT_TRUE(AllOk(RunRanks(kRanks, [&](Communicator& world) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(0));
    std::vector<uint8_t> workspace(static_cast<size_t>(KernelWorkspaceBytes(1)));
    MUSTER_ASSIGN_OR_RETURN(
        const std::unique_ptr<KernelContext> kernels,
        KernelContext::Create(*device, {},
                              Tensor(workspace.data(), DType::kU8, {static_cast<int64_t>(workspace.size())})));
    std::vector<float> parts(kRanks * 2 * 4);
    TraceRecorder recorder(*clock, *device);
    PhaseTimer timer(*clock, recorder);
    TensorExchange exchange(world, *kernels, timer,
                            Tensor(parts.data(), DType::kF32, {static_cast<int64_t>(parts.size())}));
    return body(exchange);
  })));
}

TEST(TensorExchange, GathersRowsInRankOrder) {
  OnEachRank([](TensorGroup& group) -> absl::Status {
    std::vector<float> local(2 * 4, static_cast<float>(group.rank()));
    std::vector<float> whole(kRanks * 2 * 4);
    MUSTER_RETURN_IF_ERROR(group.GatherRows(Tensor(local.data(), DType::kF32, {2, 4}),
                                            Tensor(whole.data(), DType::kF32, {kRanks * 2, 4})));
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i], static_cast<float>(i / 8)) << i;
    return absl::OkStatus();
  });
}

TEST(TensorExchange, AddsPartsInRankOrderAndKeepsOwnRows) {
  OnEachRank([](TensorGroup& group) -> absl::Status {
    // In f32, (1e8 + 1) - 1e8 is 0 and (1e8 - 1e8) + 1 is 1: the order shows.
    const float part[kRanks] = {1e8f, 1.0f, -1e8f};
    std::vector<float> partial(kRanks * 2 * 4);
    for (size_t i = 0; i < partial.size(); ++i) partial[i] = part[group.rank()] * static_cast<float>(1 + i / 8);
    std::vector<float> local(2 * 4);
    MUSTER_RETURN_IF_ERROR(group.ReduceScatterRows(Tensor(partial.data(), DType::kF32, {kRanks * 2, 4}),
                                                   Tensor(local.data(), DType::kF32, {2, 4})));
    const float row = static_cast<float>(1 + group.rank());
    for (const float value : local) EXPECT_EQ(value, (1e8f * row + row) - 1e8f * row);
    return absl::OkStatus();
  });
}

// ---- whole models ----------------------------------------------------------------------------------------------

ModelShape Gpt2() {
  return {.layers = 2, .hidden = 16, .heads = 4, .kv_heads = 4, .ffn = 64, .vocab = 53, .context = 12};
}

ModelShape Llama(int64_t kv_heads, bool tied, bool qkv_bias) {
  return {.family = ModelFamily::kLlama,
          .layers = 2,
          .hidden = 16,
          .heads = 4,
          .kv_heads = kv_heads,
          .ffn = 24,
          .vocab = 53,
          .context = 12,
          .tied = tied,
          .qkv_bias = qkv_bias};
}

Layout TensorLayout(int64_t tensor) { return {.tensor = tensor, .micro_batch = 2, .sequence_length = 12}; }

struct GroupResult {
  std::vector<double> loss_sums;  // by rank
  Gradients gradients;            // summed over the group
};

GroupResult RunGroup(const ModelShape& shape, const Layout& layout) {
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  std::vector<ModelResult> results(static_cast<size_t>(layout.tensor));
  EXPECT_TRUE(AllOk(RunRanks(static_cast<int>(layout.tensor), [&](Communicator& world) -> absl::Status {
    const std::unique_ptr<Device> device = MakeCpuDevice();
    TraceRecorder recorder(*clock, *device);
    PhaseTimer timer(*clock, recorder);
    ModelHarness model(shape, layout, world.rank(), [&](KernelContext& kernels, StageMemory& memory) {
      return std::make_unique<TensorExchange>(world, kernels, timer, memory.BindBytes(kTensorParts));
    });
    MUSTER_ASSIGN_OR_RETURN(results[static_cast<size_t>(world.rank())], model.Run(MakeTestBatch(shape, layout)));
    for (const MemoryCategory category :
         {MemoryCategory::kParameters, MemoryCategory::kGradients, MemoryCategory::kActivations,
          MemoryCategory::kLogits, MemoryCategory::kWorkspace}) {
      EXPECT_EQ(model.memory().bound_bytes()[static_cast<size_t>(category)], model.memory().ledger().bytes(category))
          << MemoryCategoryName(category);
    }
    return absl::OkStatus();
  })));
  GroupResult group;
  for (const ModelResult& result : results) {
    group.loss_sums.push_back(result.loss_sum);
    for (const auto& [name, values] : result.gradients) {
      std::vector<float>& sum = group.gradients[name];
      sum.resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
    }
  }
  return group;
}

class TensorParallel : public testing::TestWithParam<ModelShape> {};

INSTANTIATE_TEST_SUITE_P(Models, TensorParallel,
                         testing::Values(Gpt2(), Llama(4, false, false), Llama(2, true, true), Llama(1, false, true)));

TEST_P(TensorParallel, LossAndGradientsAreThoseOfOneRank) {
  ModelHarness one(GetParam(), TensorLayout(1));
  const absl::StatusOr<ModelResult> expected = one.Run(MakeTestBatch(GetParam(), TensorLayout(1)));
  ASSERT_TRUE(expected.ok());
  for (const int64_t tensor : {2, 4}) {  // 53 tokens: the last rank's part of the vocabulary is padded
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      Layout layout = TensorLayout(tensor);
      layout.recompute = recompute;
      layout.loss_chunk_tokens = recompute == Recompute::kFull ? 7 : 0;
      const GroupResult group = RunGroup(GetParam(), layout);
      for (const double loss_sum : group.loss_sums) {
        EXPECT_NEAR(loss_sum, expected->loss_sum, 1e-6 * expected->loss_sum);
        EXPECT_EQ(loss_sum, group.loss_sums[0]);
      }
      EXPECT_LE(LargestRelativeError(group.gradients, expected->gradients), 1e-5) << tensor;
    }
  }
}

}  // namespace
}  // namespace muster
