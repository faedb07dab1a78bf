#include "tests/worker/model/model_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "common/plan/ledger.h"
#include "common/plan/parameter_shard.h"
#include "worker/kernels/kernels.h"
#include "worker/model/attention_unit.h"
#include "worker/model/make_unit.h"

namespace muster {
namespace {

// Norm weights about 1, everything else about 0 and large enough that every path matters.
float WeightAt(const ParameterInfo& info, int64_t element) {
  const uint64_t bits = MixBits(HashText(info.name) + static_cast<uint64_t>(element) * kSplitMixIncrement);
  const float uniform = static_cast<float>(bits >> 40) / static_cast<float>(1 << 24) - 0.5f;
  return (absl::EndsWith(info.name, "norm.weight") ? 1.0f : 0.0f) + 0.5f * uniform;
}

// visit(element of the rank's local tensor, element of the logical one).
template <typename Visit>
void ForEachElement(const ShardPiece& piece, const ParameterInfo& info, const Visit& visit) {
  const int64_t width = info.dims.size() == 2 ? info.dims[1] : 1;
  const int64_t columns = info.dims.size() == 2 ? piece.dims[1] : 1;
  const int64_t first_column = info.dims.size() == 2 ? piece.offset[1] : 0;
  for (int64_t i = 0; i < piece.elements(); ++i) {
    visit(piece.local_first + i, (piece.offset[0] + i / columns) * width + first_column + i % columns);
  }
}

Tensor AsTensor(std::vector<int32_t>& values) {
  return values.empty() ? Tensor() : Tensor(values.data(), DType::kI32, {static_cast<int64_t>(values.size())});
}

}  // namespace

TestBatch MakeTestBatch(const ModelShape& shape, const Layout& layout) {
  TestBatch batch;
  for (int64_t i = 0; i < layout.micro_batch * layout.sequence_length; ++i) {
    batch.tokens.push_back(static_cast<int32_t>((i * i + 7 * i) % shape.vocab));
    batch.targets.push_back(i % 3 == 2 ? kernels::kIgnoredTarget : static_cast<int32_t>((i * 11 + 5) % shape.vocab));
  }
  return batch;
}

ModelHarness::ModelHarness(const ModelShape& shape, const Layout& layout, int64_t rank, const MakeGroup& make_group)
    : shape_(shape),
      layout_(layout),
      rank_(rank),
      device_(*OpenDevice(0)),
      memory_(*StageMemory::Allocate(*device_, BuildLedger(shape_, layout_, {{0, shape_.units()}}, rank))),
      kernels_(*KernelContext::Create(*device_, {}, memory_.BindBytes("workspace/kernels"))),
      group_(make_group ? make_group(*kernels_, memory_) : nullptr),
      context_(MakeContext()) {
  FillAttentionTables(context_);
  for (const Unit& unit : Units(shape_)) {
    units_.push_back(MakeUnit(context_, unit));
    const std::string input = absl::StrCat("saved/", unit.name(), "/input");
    stream_.push_back(
        memory_.has(input) ? memory_.Bind(input, context_.compute, {context_.stream_rows(), shape_.hidden}) : Tensor());
  }
  head_ = static_cast<HeadUnit*>(units_.back().get());
  FillWeights();
}

UnitContext ModelHarness::MakeContext() {
  return {.kernels = *kernels_,
          .memory = memory_,
          .shape = shape_,
          .micro_batch = layout_.micro_batch,
          .sequence_length = layout_.sequence_length,
          .compute = layout_.precision == Precision::kFp32 ? DType::kF32 : DType::kBF16,
          .recompute = layout_.recompute,
          .loss_chunk_tokens = layout_.loss_chunk_tokens,
          .tensor = group_.get()};
}

void ModelHarness::FillWeights() {
  for (const ParameterInfo& info : Parameters(shape_)) {
    const ParameterShard shard = ShardOnTensorRank(shape_, info, layout_.tensor, rank_);
    std::vector<float> values(static_cast<size_t>(shard.local_elements()));
    for (const ShardPiece& piece : shard.pieces) {
      ForEachElement(piece, info, [&](int64_t local, int64_t global) {
        values[static_cast<size_t>(local)] = WeightAt(info, global);
      });
    }
    const Tensor from(values.data(), DType::kF32, {shard.local_elements()});
    kernels::Cast(*kernels_, from,
                  memory_.Bind(absl::StrCat("parameter/", info.name), context_.compute, {shard.local_elements()}));
  }
}

absl::StatusOr<ModelResult> ModelHarness::Run(const TestBatch& batch_in) {
  TestBatch values = batch_in;
  const MicroBatch batch{.tokens = AsTensor(values.tokens),
                         .targets = AsTensor(values.targets),
                         .document_starts = AsTensor(values.document_starts)};
  for (size_t k = 0; k < units_.size(); ++k) {
    const Tensor output = k + 1 < units_.size() ? stream_[k + 1] : Tensor();
    MUSTER_RETURN_IF_ERROR(units_[k]->Forward(batch, stream_[k], output));
  }
  const double loss_sum = head_->LossSum(0);
  const Tensor gradient =
      memory_.Bind(absl::StrCat(kStreamGradient, 0), context_.compute, {context_.stream_rows(), shape_.hidden});
  for (size_t k = units_.size(); k-- > 0;) MUSTER_RETURN_IF_ERROR(units_[k]->Backward(batch, stream_[k], gradient));
  return ModelResult{.loss_sum = loss_sum, .gradients = CollectGradients()};
}

Gradients ModelHarness::CollectGradients() {
  Gradients gradients;
  for (const ParameterInfo& info : Parameters(shape_)) {
    const ParameterShard shard = ShardOnTensorRank(shape_, info, layout_.tensor, rank_);
    std::vector<float>& whole = gradients[info.name];
    whole.resize(static_cast<size_t>(info.elements()));
    const auto add = [&](const std::string& entry) {
      const Tensor local = memory_.Bind(entry, DType::kF32, {shard.local_elements()});
      for (const ShardPiece& piece : shard.pieces) {
        if (!piece.partial_gradients && piece.first_sharer != rank_) continue;
        ForEachElement(piece, info,
                       [&](int64_t from, int64_t to) { whole[static_cast<size_t>(to)] += local.as<float>()[from]; });
      }
    };
    add(absl::StrCat("gradient/", info.name));
    if (shape_.tied && info.name == kTiedParameter) add(kTiedHeadGradient);
  }
  return gradients;
}

double LargestRelativeError(const Gradients& a, const Gradients& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (const auto& [name, expected] : b) {
    const std::vector<float>& actual = a.at(name);
    double error = 0;
    double norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += std::pow(static_cast<double>(actual[i]) - static_cast<double>(expected[i]), 2);
      norm += std::pow(static_cast<double>(expected[i]), 2);
    }
    EXPECT_GT(norm, 0) << name;
    largest = std::max(largest, std::sqrt(error / norm));
  }
  return largest;
}

}  // namespace muster
