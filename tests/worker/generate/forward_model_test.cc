// The engine on exported directories, held against what transformers computes of them.
#include "worker/generate/forward_model.h"

#include <cmath>

#include "common/formats/checkpoint_source.h"
#include "common/formats/hugging_face_export.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/golden_logits.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_checkpoint.h"
#include "worker/generate/compute_self_check.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string Export(const TemporaryDirectory& root, const ModelShape& shape, const std::string& to) {
  FoundCheckpoint found = FindCheckpoint(WriteTinyCheckpoint(root.File("ckpt"), shape)).value();
  const absl::StatusOr<int64_t> bytes = ExportHuggingFace(found.reader, to, {});
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return to;
}

std::vector<std::vector<float>> LogitsOf(const std::string& path, absl::Span<const int32_t> tokens) {
  const ModelSource source = OpenModelSource(path).value();
  const auto model = ForwardModel::Create(source, {.window = source.shape.context}).value();
  EXPECT_TRUE(model->Forward(tokens).ok());
  std::vector<std::vector<float>> logits(tokens.size(), std::vector<float>(static_cast<size_t>(source.shape.vocab)));
  for (size_t i = 0; i < tokens.size(); ++i) {
    model->CopyLogits(static_cast<int64_t>(i), absl::MakeSpan(logits[i]));
  }
  return logits;
}

TEST(ForwardModel, GivesTheLogitsOfTransformersOnAnExportedDirectory) {
  for (const GoldenModel& golden : GoldenModels()) {
    const TemporaryDirectory root;
    const auto logits = LogitsOf(Export(root, golden.shape, root.File("out")), golden.tokens);
    double largest = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      for (size_t v = 0; v < logits[i].size(); ++v) {
        largest = std::max(largest, std::abs(static_cast<double>(logits[i][v]) - golden.logits[i][v]));
      }
    }
    EXPECT_LE(largest, 1e-4) << golden.name;
  }
}

TEST(ForwardModel, ACheckpointAndItsExportGiveTheSameBits) {
  const TemporaryDirectory root;
  const std::vector<int32_t> tokens = {1, 2, 3};
  const std::string exported = Export(root, TinyGpt2(), root.File("out"));
  EXPECT_EQ(LogitsOf(root.File("ckpt"), tokens), LogitsOf(exported, tokens));
}

TEST(ForwardModel, WhatFollowsAPositionDoesNotChangeIt) {
  const TemporaryDirectory root;
  WriteTinyCheckpoint(root.File("ckpt"), TinyGpt2());
  const auto all = LogitsOf(root.File("ckpt"), {5, 6, 7, 8});
  const auto prefix = LogitsOf(root.File("ckpt"), {5, 6});
  EXPECT_EQ(all[1], prefix[1]);
}

TEST(ForwardModel, NamesATokenOutsideTheVocabulary) {
  const TemporaryDirectory root;
  WriteTinyCheckpoint(root.File("ckpt"), TinyGpt2());
  const ModelSource source = OpenModelSource(root.File("ckpt")).value();
  const auto model = ForwardModel::Create(source, {.window = 4}).value();
  const absl::Status status = model->Forward({1, 61});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("token 61 at position 1"));
}

TEST(ComputeSelfCheck, IsWhatTheWeightsGiveAndNoOthers) {
  const TemporaryDirectory root;
  WriteTinyCheckpoint(root.File("ckpt"), TinyGpt2());
  ModelSource source = OpenModelSource(root.File("ckpt")).value();
  const auto check_of = [](const ModelSource& from) {
    const auto model = ForwardModel::Create(from, {.window = from.shape.context}).value();
    return ComputeSelfCheck(*model).value();
  };
  const LogitsSelfCheck check = check_of(source);
  EXPECT_EQ(check.tokens, SelfCheckTokens(source.shape));
  EXPECT_TRUE(CompareSelfCheck(check, check_of(source).log_probabilities, 0).ok());
  const auto read = source.read;
  source.read = [read](const ParameterInfo& parameter, int64_t row, absl::Span<float> values) {
    const absl::Status status = read(parameter, row, values);
    if (parameter.name == "layer.1.ffn.up.bias") values[0] += 0.5f;
    return status;
  };
  EXPECT_THAT(std::string(CompareSelfCheck(check, check_of(source).log_probabilities, kSelfCheckTolerance).message()),
              HasSubstr("does not compute what muster_selfcheck.json says"));
}

}  // namespace
}  // namespace muster
