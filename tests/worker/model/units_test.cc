// Every unit's backward is the derivative of its forward, by central differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/ledger.h"
#include "worker/kernels/context.h"
#include "worker/kernels/kernels.h"
#include "worker/model/attention_unit.h"
#include "worker/model/embedding_unit.h"
#include "worker/model/feed_forward_unit.h"
#include "worker/model/head_unit.h"
#include "worker/model/stage_memory.h"

namespace muster {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kSequence = 5;
constexpr int64_t kRows = kBatch * kSequence;

ModelShape Shape() {
  return {.layers = 1, .hidden = 8, .heads = 2, .kv_heads = 2, .ffn = 32, .vocab = 11, .context = 6};
}

// Values of about `scale`, different for each `salt`.
float Value(int64_t i, int64_t salt, float scale) {
  return scale * std::sin(static_cast<float>(i * 37 + salt * 11) * 0.7f + static_cast<float>(salt));
}

// One unit as a stage of its own in the middle of a pipeline, with parameters, input and direction filled in. The
// scalar whose gradient is checked is the output times a fixed direction, or the head's loss.
class UnitBench {
 public:
  explicit UnitBench(int64_t unit_index)
      : unit_(Units(shape_)[static_cast<size_t>(unit_index)]),
        device_(*OpenDevice(0)),
        memory_(*StageMemory::Allocate(
            *device_, BuildLedger(shape_, layout_, {{unit_index, unit_index + 1}}, /*rank=*/unit_index))),
        kernels_(*KernelContext::Create(*device_, {}, memory_.BindBytes("workspace/kernels"))),
        context_{.kernels = *kernels_,
                 .memory = memory_,
                 .shape = shape_,
                 .micro_batch = kBatch,
                 .sequence_length = kSequence} {
    Fill();
    unit_model_ = Make();
  }

  // The scalar, with forward run at the present values.
  double Scalar() {
    EXPECT_TRUE(unit_model_->Forward(batch_, input_, output_).ok());
    if (head_ != nullptr) return head_->LossSum(0);
    double sum = 0;
    for (int64_t i = 0; i < kRows * shape_.hidden; ++i) {
      sum += static_cast<double>(output_.as<float>()[i]) * direction_[static_cast<size_t>(i)];
    }
    return sum;
  }

  // Runs forward and backward; gradients of parameters and of the input are then where they belong.
  void Differentiate(bool accumulate) {
    Scalar();
    std::copy(direction_.begin(), direction_.end(), gradient_.as<float>());
    batch_.accumulate = accumulate;
    EXPECT_TRUE(unit_model_->Backward(batch_, input_, gradient_).ok());
  }

  struct Checked {
    std::string name;
    Tensor value;
    Tensor gradient;
  };

  // Parameters and input, with where their gradients are.
  std::vector<Checked> All() {
    std::vector<Checked> all;
    for (const ParameterInfo& info : ChunkParameters(shape_, {{unit_.index, unit_.index + 1}})) {
      const std::string gradient =
          info.unit == unit_.index ? absl::StrCat("gradient/", info.name) : std::string(kTiedHeadGradient);
      all.push_back({info.name, memory_.Bind(absl::StrCat("parameter/", info.name), DType::kF32, {info.elements()}),
                     memory_.Bind(gradient, DType::kF32, {info.elements()})});
    }
    if (unit_.kind != UnitKind::kEmbedding) all.push_back({"input", input_, gradient_});
    return all;
  }

 private:
  void Fill() {
    input_storage_.resize(kRows * static_cast<size_t>(shape_.hidden));
    output_storage_ = gradient_storage_ = input_storage_;
    direction_.resize(input_storage_.size());
    for (size_t i = 0; i < input_storage_.size(); ++i) {
      input_storage_[i] = Value(static_cast<int64_t>(i), 1, 1.0f);
      direction_[i] = Value(static_cast<int64_t>(i), 2, 0.5f);
    }
    input_ = Tensor(input_storage_.data(), DType::kF32, {kRows, shape_.hidden});
    output_ = Tensor(output_storage_.data(), DType::kF32, {kRows, shape_.hidden});
    gradient_ = Tensor(gradient_storage_.data(), DType::kF32, {kRows, shape_.hidden});
    for (int64_t i = 0; i < kRows; ++i) {
      tokens_.push_back(static_cast<int32_t>(i * 3 % shape_.vocab));
      targets_.push_back(i == 4 ? kernels::kIgnoredTarget : static_cast<int32_t>(i * 5 % shape_.vocab));
    }
    batch_.tokens = Tensor(tokens_.data(), DType::kI32, {kRows});
    batch_.targets = Tensor(targets_.data(), DType::kI32, {kRows});
    int64_t salt = 3;
    for (const Checked& parameter : All()) {
      if (parameter.name == "input") continue;
      for (int64_t i = 0; i < parameter.value.elements(); ++i) parameter.value.as<float>()[i] = Value(i, salt, 0.4f);
      ++salt;
    }
  }

  std::unique_ptr<ModelUnit> Make() {
    switch (unit_.kind) {
      case UnitKind::kEmbedding:
        return MakeEmbeddingUnit(context_, unit_);
      case UnitKind::kAttention:
        return MakeAttentionUnit(context_, unit_);
      case UnitKind::kFeedForward:
        return MakeFeedForwardUnit(context_, unit_);
      case UnitKind::kHead:
        break;
    }
    auto head = std::make_unique<HeadUnit>(context_, unit_);
    head_ = head.get();
    return head;
  }

  const ModelShape shape_ = Shape();
  const Layout layout_ = {.pipeline = 4, .micro_batch = kBatch, .sequence_length = kSequence};
  const Unit unit_;
  const std::unique_ptr<Device> device_;
  StageMemory memory_;
  const std::unique_ptr<KernelContext> kernels_;
  const UnitContext context_;
  std::vector<float> input_storage_, output_storage_, gradient_storage_, direction_;
  std::vector<int32_t> tokens_, targets_;
  Tensor input_, output_, gradient_;  // (T, h)
  MicroBatch batch_;
  std::unique_ptr<ModelUnit> unit_model_;
  HeadUnit* head_ = nullptr;
};

class UnitDerivative : public testing::TestWithParam<int64_t> {};

TEST_P(UnitDerivative, BackwardIsTheDerivativeOfForward) {
  UnitBench bench(GetParam());
  bench.Differentiate(/*accumulate=*/false);
  constexpr float kStep = 5e-3f;
  for (const UnitBench::Checked& checked : bench.All()) {
    const std::vector<float> gradient(checked.gradient.as<float>(),
                                      checked.gradient.as<float>() + checked.gradient.elements());
    double error = 0;
    double norm = 0;
    for (int64_t i = 0; i < checked.value.elements(); ++i) {
      float& value = checked.value.as<float>()[i];
      const float before = value;
      value = before + kStep;
      const double above = bench.Scalar();
      value = before - kStep;
      const double below = bench.Scalar();
      value = before;
      const double difference = (above - below) / (2 * static_cast<double>(kStep));
      error += std::pow(difference - static_cast<double>(gradient[static_cast<size_t>(i)]), 2);
      norm += difference * difference;
    }
    EXPECT_LE(std::sqrt(error), 5e-3 * std::sqrt(norm) + 1e-3) << checked.name;
    EXPECT_GT(norm, 0) << checked.name;
  }
}

TEST_P(UnitDerivative, AccumulatingAddsToTheGradientsOfParameters) {
  UnitBench bench(GetParam());
  bench.Differentiate(/*accumulate=*/false);
  std::vector<std::vector<float>> once;
  for (const UnitBench::Checked& checked : bench.All()) {
    once.emplace_back(checked.gradient.as<float>(), checked.gradient.as<float>() + checked.gradient.elements());
  }
  bench.Differentiate(/*accumulate=*/true);
  const std::vector<UnitBench::Checked> all = bench.All();
  for (size_t k = 0; k < all.size(); ++k) {
    const float times = all[k].name == "input" ? 1.0f : 2.0f;
    for (int64_t i = 0; i < all[k].gradient.elements(); ++i) {
      const float expected = times * once[k][static_cast<size_t>(i)];
      EXPECT_NEAR(all[k].gradient.as<float>()[i], expected, 1e-5f * (1 + std::abs(expected))) << all[k].name;
    }
  }
}

std::string KindName(const testing::TestParamInfo<int64_t>& info) {
  constexpr const char* kNames[] = {"Embedding", "Attention", "FeedForward", "Head"};
  return kNames[info.param];
}

INSTANTIATE_TEST_SUITE_P(EveryKind, UnitDerivative, testing::Range<int64_t>(0, 4), KindName);

}  // namespace
}  // namespace muster
