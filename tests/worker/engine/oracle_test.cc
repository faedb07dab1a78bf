// Parity with PyTorch: the files of tests/oracle/ hold what a float64 reference computed for each family.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/formats/safetensors.h"
#include "tests/support/rank_harness.h"
#include "tests/worker/engine/training_harness.h"
#include "worker/engine/rank_engine.h"

namespace muster {
namespace {

constexpr double kTolerance = 1e-5;         // relative, by norm
constexpr double kBf16LossDistance = 1e-2;  // nats, from the fp32 engine's loss

class Oracle {
 public:
  explicit Oracle(const std::string& name) {
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(absl::StrCat("tests/oracle/", name, ".safetensors"));
    if (!file.ok()) ADD_FAILURE() << file.status().ToString();
    file_.emplace(*std::move(file));
  }

  template <typename T>
  std::vector<T> Values(const std::string& name) const {
    const StoredTensor& tensor = file_->tensors().at(name);
    std::vector<T> values(tensor.data.size() / sizeof(T));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    return values;
  }

  double Number(const std::string& key) const {
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(file_->metadata().at(key), &value)) << key;
    return value;
  }
  int64_t Integer(const std::string& key) const { return static_cast<int64_t>(Number(key)); }

  EngineConfig Job(Precision precision) const {
    EngineConfig config;
    config.model = {.family = file_->metadata().at("family") == "gpt2" ? ModelFamily::kGpt2 : ModelFamily::kLlama,
                    .layers = Integer("layers"),
                    .hidden = Integer("hidden"),
                    .heads = Integer("heads"),
                    .kv_heads = Integer("kv_heads"),
                    .ffn = Integer("ffn"),
                    .vocab = Integer("vocab"),
                    .context = Integer("context"),
                    .tied = Integer("tied") != 0,
                    .qkv_bias = Integer("qkv_bias") != 0,
                    .norm_eps = Number("norm_eps"),
                    .rope_base = Number("rope_base")};
    config.layout = {.micro_batch = Integer("batch"), .sequence_length = Integer("context"), .precision = precision};
    config.stages = {{0, config.model.units()}};
    config.training = {.steps = Integer("steps"),
                       .adamw = {.learning_rate = Number("lr"),
                                 .beta1 = Number("beta1"),
                                 .beta2 = Number("beta2"),
                                 .epsilon = Number("eps"),
                                 .weight_decay = Number("weight_decay")},
                       .schedule = {.warmup_steps = Integer("warmup_steps"), .min_lr_ratio = Number("min_lr_ratio")},
                       .clip_grad_norm = Number("clip_grad_norm")};
    return config;
  }

  // Fills a piece of a parameter from weight/NAME.
  absl::Status InitialWeights(const ParameterInfo& parameter, int64_t first, absl::Span<float> values) const {
    const std::vector<float> all = Values<float>(absl::StrCat("weight/", parameter.name));
    std::copy_n(all.begin() + first, values.size(), values.begin());
    return absl::OkStatus();
  }

 private:
  std::optional<SafetensorsFile> file_;
};

// Sample i is row i of all batches.
class OracleSource : public SampleSource {
 public:
  explicit OracleSource(const Oracle& oracle)
      : sequence_length_(oracle.Integer("context")),
        tokens_(oracle.Values<int32_t>("tokens")),
        targets_(oracle.Values<int32_t>("targets")) {}
  int64_t sequence_length() const override { return sequence_length_; }
  absl::Status Sample(int64_t index, const SampleRows& row) const override {
    std::copy_n(tokens_.begin() + index * sequence_length_, sequence_length_, row.tokens.begin());
    std::copy_n(targets_.begin() + index * sequence_length_, sequence_length_, row.targets.begin());
    return absl::OkStatus();
  }
  std::vector<int32_t>& tokens() { return tokens_; }
  std::vector<int32_t>& targets() { return targets_; }

 private:
  const int64_t sequence_length_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> targets_;
};

// The parts of a parameter that are compared each by itself: whole, but for the bias of qkv, whose key's part has a
// gradient of zero in exact arithmetic where positions are not rotary (softmax does not see what is added to all scores
// of a row).
struct Part {
  std::string name;
  size_t first;
  size_t count;
  bool zero_gradient;
};

std::vector<Part> PartsOf(const ModelShape& shape, const ParameterInfo& parameter) {
  const size_t elements = static_cast<size_t>(parameter.elements());
  if (!absl::EndsWith(parameter.name, "qkv.bias")) return {{parameter.name, 0, elements, false}};
  const size_t query = static_cast<size_t>(shape.hidden);
  const size_t key = (elements - query) / 2;
  return {{absl::StrCat(parameter.name, "[query]"), 0, query, false},
          {absl::StrCat(parameter.name, "[key]"), query, key, !shape.rotary()},
          {absl::StrCat(parameter.name, "[value]"), query + key, key, false}};
}

double LargestDifference(absl::Span<const float> a, absl::Span<const float> b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

double Norm(absl::Span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

class OracleOf : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Families, OracleOf, testing::Values("gpt2_tiny", "llama_tiny", "qwen2_tiny"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST_P(OracleOf, LossAndEveryGradientAgreeInFp32) {
  const Oracle oracle(GetParam());
  const EngineConfig config = oracle.Job(Precision::kFp32);
  OracleSource source(oracle);
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  const size_t rows = static_cast<size_t>(config.layout.micro_batch * config.layout.sequence_length);
  const auto counted = std::count_if(source.targets().begin(), source.targets().begin() + static_cast<int64_t>(rows),
                                     [](int32_t target) { return target >= 0; });

  EXPECT_TRUE(AllOk(RunRanks(1, [&](Communicator& world) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<RankEngine> engine, RankEngine::Build(config, world, *clock));
    MUSTER_RETURN_IF_ERROR(
        InitializeParameters(*engine->kernels, engine->parameters,
                             [&](const ParameterInfo& parameter, int64_t first, absl::Span<float> values) {
                               return oracle.InitialWeights(parameter, first, values);
                             }));
    MUSTER_RETURN_IF_ERROR(engine->PublishWeights());
    const MicroBatch batch{.tokens = Tensor(source.tokens().data(), DType::kI32, {static_cast<int64_t>(rows)}),
                           .targets = Tensor(source.targets().data(), DType::kI32, {static_cast<int64_t>(rows)}),
                           .loss_scale = 1.0f / static_cast<float>(counted)};
    MUSTER_ASSIGN_OR_RETURN(const double loss_sum, engine->pipeline.Train([&](int64_t) { return batch; }, nullptr));
    MUSTER_RETURN_IF_ERROR(engine->reduction.Finish());

    const double loss = oracle.Values<double>("loss")[0];
    EXPECT_NEAR(loss_sum / static_cast<double>(counted), loss, kTolerance * loss);
    const double global_norm = oracle.Values<double>("gradient_norms")[0];
    for (const StageParameter& parameter : engine->parameters) {
      const std::vector<float> all = oracle.Values<float>(absl::StrCat("gradient/", parameter.info.name));
      for (const Part& part : PartsOf(config.model, parameter.info)) {
        const absl::Span<const float> expected(all.data() + part.first, part.count);
        const absl::Span<const float> actual(parameter.gradient.as<float>() + part.first, part.count);
        if (part.zero_gradient) {
          EXPECT_LE(Norm(actual), kTolerance * global_norm) << part.name;
        } else {
          EXPECT_LE(RelativeError(actual, expected), kTolerance) << part.name;
        }
      }
    }
    return absl::OkStatus();
  })));
}

std::vector<RankResult> TenSteps(const Oracle& oracle, const EngineConfig& config) {
  const OracleSource source(oracle);
  return RunJob(config,
                {.train = &source,
                 .initial_weights = [&](const ParameterInfo& parameter, int64_t first, absl::Span<float> values) {
                   return oracle.InitialWeights(parameter, first, values);
                 }});
}

void ExpectTenStepsAgree(const Oracle& oracle, const EngineConfig& config) {
  const std::vector<RankResult> results = TenSteps(oracle, config);
  const WeightMap weights = MergedWeights(results);
  const std::vector<double> losses = oracle.Values<double>("losses");
  const std::vector<double> norms = oracle.Values<double>("gradient_norms");
  const std::vector<double> rates = oracle.Values<double>("learning_rates");
  ASSERT_EQ(results[0].steps.size(), losses.size());
  double rate_sum = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const StepReport& step = results[0].steps[i];
    EXPECT_NEAR(step.loss, losses[i], kTolerance * losses[i]) << "step " << step.step;
    EXPECT_NEAR(step.gradient_norm, norms[i], kTolerance * norms[i]) << "step " << step.step;
    EXPECT_NEAR(step.learning_rate, rates[i], 1e-12) << "step " << step.step;
    rate_sum += rates[i];
  }
  for (const ParameterInfo& parameter : Parameters(config.model)) {
    const std::vector<float>& values = weights.at(parameter.name);
    const std::vector<float> all = oracle.Values<float>(absl::StrCat("final/", parameter.name));
    ASSERT_EQ(values.size(), all.size()) << parameter.name;
    for (const Part& part : PartsOf(config.model, parameter)) {
      const absl::Span<const float> expected(all.data() + part.first, part.count);
      const absl::Span<const float> actual(values.data() + part.first, part.count);
      if (part.zero_gradient) {
        // AdamW makes a step of the learning rate's size of any noise.
        EXPECT_LE(LargestDifference(actual, expected), 2 * rate_sum) << part.name;
      } else {
        EXPECT_LE(RelativeError(actual, expected), kTolerance) << part.name;
      }
    }
  }
}

TEST_P(OracleOf, TenAdamWStepsAgreeInFp32) {
  const Oracle oracle(GetParam());
  ExpectTenStepsAgree(oracle, oracle.Job(Precision::kFp32));
}

TEST_P(OracleOf, TenAdamWStepsAgreeOnTwoStagesOfTwoReplicas) {
  const Oracle oracle(GetParam());
  EngineConfig config = oracle.Job(Precision::kFp32);
  config.layout.micro_batch = 1;
  config.layout.accumulation_steps = 4;
  ExpectTenStepsAgree(oracle, Cut(config, {2}, 2));
}

TEST_P(OracleOf, TenAdamWStepsAgreeOnTwoTensorRanksWithFullRecomputationAndChunkedLoss) {
  const Oracle oracle(GetParam());
  EngineConfig config = oracle.Job(Precision::kFp32);
  config.layout.tensor = 2;
  config.layout.recompute = Recompute::kFull;
  config.layout.loss_chunk_tokens = 24;
  ExpectTenStepsAgree(oracle, config);
}

TEST_P(OracleOf, Bf16StaysCloseToFp32AtEveryStep) {
  const Oracle oracle(GetParam());
  const std::vector<double> fp32 = Losses(TenSteps(oracle, oracle.Job(Precision::kFp32)));
  const std::vector<double> bf16 = Losses(TenSteps(oracle, oracle.Job(Precision::kBf16)));
  ASSERT_EQ(fp32.size(), bf16.size());
  for (size_t i = 0; i < fp32.size(); ++i) EXPECT_NEAR(bf16[i], fp32[i], kBf16LossDistance) << "step " << i + 1;
}

}  // namespace
}  // namespace muster
