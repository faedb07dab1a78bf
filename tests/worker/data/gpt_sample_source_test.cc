#include "worker/data/gpt_sample_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "common/formats/indexed_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Row {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;
};

class GptSampleSourceTest : public ::testing::Test {
 protected:
  // A dataset of the tokens first, first + 1, ...: a token says where it lies.
  std::string Make(const std::string& name, int32_t first, int64_t count) {
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    std::iota(tokens.begin(), tokens.end(), first);
    IndexedDatasetWriter writer = IndexedDatasetWriter::Create(directory_.File(name), TokenType::kUInt16).value();
    EXPECT_TRUE(writer.Append(tokens).ok());
    EXPECT_TRUE(writer.EndDocument().ok());
    EXPECT_TRUE(writer.Finish().ok());
    return directory_.File(name);
  }
  static GptSampleSourceOptions Options(const std::vector<WeightedDataset>& datasets, SampleOrder order) {
    GptSampleSourceOptions options;
    options.datasets = datasets;
    options.sequence_length = 4;
    options.vocab = 65536;
    options.seed = 11;
    options.order = order;
    return options;
  }
  static Row SampleOf(const SampleSource& source, int64_t index) {
    Row row{std::vector<int32_t>(4, -9), std::vector<int32_t>(4, -9)};
    EXPECT_TRUE(source.Sample(index, {absl::MakeSpan(row.tokens), absl::MakeSpan(row.targets), {}}).ok());
    return row;
  }

  // Documents of the tokens 0, 1, ..., the first `prompt` tokens of each not counted.
  std::string MakeDocuments(const std::string& name, const std::vector<int32_t>& lengths, int32_t prompt = 0) {
    IndexedDatasetWriter writer = IndexedDatasetWriter::Create(directory_.File(name), TokenType::kUInt16).value();
    int32_t token = 0;
    for (const int32_t length : lengths) {
      for (int32_t i = 0; i < length; ++i, ++token) {
        EXPECT_TRUE(writer.Append(absl::MakeConstSpan(&token, 1), i >= prompt).ok());
      }
      EXPECT_TRUE(writer.EndDocument().ok());
    }
    EXPECT_TRUE(writer.Finish().ok());
    return directory_.File(name);
  }

  TemporaryDirectory directory_;
};

struct MaskedRow : Row {
  std::vector<int32_t> starts = std::vector<int32_t>(4, -9);
};
MaskedRow MaskedSampleOf(const SampleSource& source, int64_t index) {
  MaskedRow row;
  row.tokens.resize(4);
  row.targets.resize(4);
  const SampleRows rows = {absl::MakeSpan(row.tokens), absl::MakeSpan(row.targets), absl::MakeSpan(row.starts)};
  EXPECT_TRUE(source.Sample(index, rows).ok());
  return row;
}

constexpr int32_t kIgnored = kIgnoredSampleTarget;

TEST_F(GptSampleSourceTest, ShuffledEpochsVisitEveryCompleteWindowOnce) {
  // 42 tokens: ten windows of four and their targets; the last token is only a target, of 41 the last is left over.
  const auto source = GptSampleSource::Open(Options({{Make("d", 0, 42)}}, SampleOrder::kShuffled)).value();
  ASSERT_EQ(source->windows(), 10);
  std::vector<std::vector<int32_t>> epochs;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int32_t> starts;
    for (int64_t i = 0; i < 10; ++i) {
      const Row row = SampleOf(*source, epoch * 10 + i);
      const int32_t start = row.tokens[0];
      EXPECT_EQ(start % 4, 0);
      EXPECT_THAT(row.tokens, ElementsAre(start, start + 1, start + 2, start + 3));
      EXPECT_THAT(row.targets, ElementsAre(start + 1, start + 2, start + 3, start + 4));
      starts.push_back(start);
    }
    epochs.push_back(starts);
    EXPECT_EQ(std::set<int32_t>(starts.begin(), starts.end()).size(), 10u);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST_F(GptSampleSourceTest, ASampleDependsOnNothingButItsIndex) {
  const auto options = Options({{Make("d", 0, 1000)}}, SampleOrder::kShuffled);
  const auto forwards = GptSampleSource::Open(options).value();
  const auto backwards = GptSampleSource::Open(options).value();
  std::vector<std::vector<int32_t>> seen;
  for (int64_t i = 0; i < 600; ++i) seen.push_back(SampleOf(*forwards, i).tokens);
  for (int64_t i = 599; i >= 0; --i) ASSERT_EQ(SampleOf(*backwards, i).tokens, seen[static_cast<size_t>(i)]) << i;
}

TEST_F(GptSampleSourceTest, AnotherSeedIsAnotherOrder) {
  GptSampleSourceOptions options = Options({{Make("d", 0, 1000)}}, SampleOrder::kShuffled);
  const auto one = GptSampleSource::Open(options).value();
  options.seed = 12;
  const auto other = GptSampleSource::Open(options).value();
  int equal = 0;
  for (int64_t i = 0; i < 200; ++i) equal += SampleOf(*one, i).tokens == SampleOf(*other, i).tokens;
  EXPECT_LT(equal, 20);
}

TEST_F(GptSampleSourceTest, BlendsDatasetsByWeight) {
  const auto source =
      GptSampleSource::Open(Options({{Make("a", 0, 401), 3}, {Make("b", 1000, 401), 1}}, SampleOrder::kShuffled))
          .value();
  int from_a = 0;
  std::set<int32_t> starts_of_a;
  for (int64_t i = 0; i < 400; ++i) {
    const int32_t start = SampleOf(*source, i).tokens[0];
    if (start >= 1000) continue;
    ++from_a;
    if (from_a <= 100) starts_of_a.insert(start);
  }
  EXPECT_EQ(from_a, 300);
  EXPECT_EQ(starts_of_a.size(), 100u) << "an epoch of a dataset is its own, whatever the blend";
}

TEST_F(GptSampleSourceTest, SequentialVisitsEveryTargetOnceAndPadsTheLastWindow) {
  // 11 tokens have 10 targets: windows of 4, 4 and 2.
  const auto source = GptSampleSource::Open(Options({{Make("d", 0, 11)}}, SampleOrder::kSequential)).value();
  ASSERT_EQ(source->windows(), 3);
  EXPECT_THAT(SampleOf(*source, 0).tokens, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(SampleOf(*source, 0).targets, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(SampleOf(*source, 1).targets, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(SampleOf(*source, 2).tokens, ElementsAre(8, 9, 0, 0));
  EXPECT_THAT(SampleOf(*source, 2).targets, ElementsAre(9, 10, kIgnoredSampleTarget, kIgnoredSampleTarget));
  EXPECT_THAT(SampleOf(*source, 3).targets, Each(kIgnoredSampleTarget));
}

TEST_F(GptSampleSourceTest, SequentialGoesThroughTheDatasetsInTurn) {
  const auto source =
      GptSampleSource::Open(Options({{Make("a", 0, 6)}, {Make("b", 100, 5)}}, SampleOrder::kSequential)).value();
  ASSERT_EQ(source->windows(), 3);
  EXPECT_THAT(SampleOf(*source, 1).targets,
              ElementsAre(5, kIgnoredSampleTarget, kIgnoredSampleTarget, kIgnoredSampleTarget));
  EXPECT_THAT(SampleOf(*source, 2).tokens, ElementsAre(100, 101, 102, 103));
}

TEST_F(GptSampleSourceTest, CountsTheTargetsOfABatch) {
  const auto source = GptSampleSource::Open(Options({{Make("d", 0, 11)}}, SampleOrder::kSequential)).value();
  std::vector<int32_t> tokens(16), targets(16);
  const SampleRows rows = {absl::MakeSpan(tokens), absl::MakeSpan(targets), {}};
  EXPECT_EQ(FillBatch(*source, 0, rows).value(), 10);
  EXPECT_EQ(FillBatch(*source, 2, rows).value(), 2);
}

TEST_F(GptSampleSourceTest, RefusesATokenOutsideTheVocabularyAtOpen) {
  GptSampleSourceOptions options = Options({{Make("d", 0, 100)}}, SampleOrder::kShuffled);
  options.vocab = 90;
  const absl::Status status = GptSampleSource::Open(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("d.bin: byte 180: token 90 is outside"));
}

TEST_F(GptSampleSourceTest, RefusesATokenBehindTheScanWhenItIsRead) {
  GptSampleSourceOptions options = Options({{Make("d", 0, 101)}}, SampleOrder::kSequential);
  options.vocab = 90;
  options.scan_tokens = 90;  // ends within the bad window
  const auto source = GptSampleSource::Open(options).value();
  std::vector<int32_t> tokens(4), targets(4);
  const SampleRows row = {absl::MakeSpan(tokens), absl::MakeSpan(targets), {}};
  EXPECT_TRUE(source->Sample(21, row).ok());
  EXPECT_EQ(source->Sample(22, row).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(GptSampleSourceTest, ADocumentMaskSaysWhereDocumentsBeginAndPredictsNoneFromAnother) {
  // Windows 0-3, 4-7, 8-11; documents begin at 0, 2, 3, 9.
  GptSampleSourceOptions options = Options({{MakeDocuments("d", {2, 1, 6, 4})}}, SampleOrder::kSequential);
  options.document_mask = true;
  const auto source = GptSampleSource::Open(options).value();
  ASSERT_EQ(source->windows(), 3);
  EXPECT_THAT(MaskedSampleOf(*source, 0).starts, ElementsAre(0, 0, 2, 3));
  EXPECT_THAT(MaskedSampleOf(*source, 0).targets, ElementsAre(1, kIgnored, kIgnored, 4));
  EXPECT_THAT(MaskedSampleOf(*source, 1).starts, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(MaskedSampleOf(*source, 1).targets, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(MaskedSampleOf(*source, 2).starts, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(MaskedSampleOf(*source, 2).targets, ElementsAre(kIgnored, 10, 11, 12));
}

TEST_F(GptSampleSourceTest, WithoutPackingASampleIsADocument) {
  GptSampleSourceOptions options = Options({{MakeDocuments("d", {3, 1, 7, 5})}}, SampleOrder::kSequential);
  options.packing = false;
  const auto source = GptSampleSource::Open(options).value();
  ASSERT_EQ(source->windows(), 4);
  EXPECT_THAT(SampleOf(*source, 0).tokens, ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(SampleOf(*source, 0).targets, ElementsAre(1, 2, kIgnored, kIgnored));
  EXPECT_THAT(SampleOf(*source, 1).targets, Each(kIgnored)) << "one token predicts nothing";
  EXPECT_THAT(SampleOf(*source, 2).tokens, ElementsAre(4, 5, 6, 7)) << "cut off";
  EXPECT_THAT(SampleOf(*source, 2).targets, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(SampleOf(*source, 3).targets, ElementsAre(12, 13, 14, 15));
  options.order = SampleOrder::kShuffled;
  const auto shuffled = GptSampleSource::Open(options).value();
  std::set<int32_t> firsts;
  for (int64_t i = 0; i < 4; ++i) firsts.insert(SampleOf(*shuffled, i).targets[0]);
  EXPECT_EQ(firsts, (std::set<int32_t>{1, kIgnored, 5, 12}));
}

TEST_F(GptSampleSourceTest, TokensOfAPromptAreReadAndNotCounted) {
  // Documents 0-3 and 4-8 whose first two tokens are prompts.
  const std::string prefix = MakeDocuments("d", {4, 5}, /*prompt=*/2);
  const auto source = GptSampleSource::Open(Options({{prefix}}, SampleOrder::kSequential)).value();
  EXPECT_THAT(SampleOf(*source, 0).tokens, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(SampleOf(*source, 0).targets, ElementsAre(kIgnored, 2, 3, kIgnored));
  EXPECT_THAT(SampleOf(*source, 1).targets, ElementsAre(kIgnored, 6, 7, 8));
}

TEST_F(GptSampleSourceTest, NoticesADatasetThatChangesWhileItIsRead) {
  const std::string prefix = Make("d", 0, 100);
  const auto source = GptSampleSource::Open(Options({{prefix}}, SampleOrder::kShuffled)).value();
  std::vector<int32_t> tokens(4), targets(4);
  const SampleRows row = {absl::MakeSpan(tokens), absl::MakeSpan(targets), {}};
  EXPECT_TRUE(source->Sample(0, row).ok());
  std::filesystem::resize_file(prefix + ".bin", 202);
  absl::Status status = source->Sample(1, row);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("d.bin: byte 200: the file has 202 bytes now and had 200"));
  std::filesystem::resize_file(prefix + ".bin", 64);
  status = source->Sample(1, row);
  EXPECT_THAT(std::string(status.message()), HasSubstr("d.bin: byte 64: the file has 64 bytes now and had 200"));
}

TEST_F(GptSampleSourceTest, BlendedCountsAreExactOverAnyStretch) {
  const auto source =
      GptSampleSource::Open(
          Options({{Make("a", 0, 41), 5}, {Make("b", 1000, 401), 2}, {Make("c", 2000, 81), 1}}, SampleOrder::kShuffled))
          .value();
  std::vector<int64_t> counts(3);
  for (int64_t i = 0; i < 3 * kBlendPeriod; ++i) {
    ++counts[static_cast<size_t>(SampleOf(*source, i).tokens[0] / 1000)];
    for (size_t d = 0; d < 3; ++d) {
      const double share = static_cast<double>(i + 1) * (d == 0 ? 5 : d == 1 ? 2 : 1) / 8;
      ASSERT_LT(std::abs(static_cast<double>(counts[d]) - share), 1.5) << "dataset " << d << " after sample " << i;
    }
  }
  EXPECT_THAT(counts, ElementsAre(3 * 2560, 3 * 1024, 3 * 512));
}

TEST_F(GptSampleSourceTest, SaysHowManyTokensAreMissing) {
  const absl::Status status = GptSampleSource::Open(Options({{Make("d", 0, 4)}}, SampleOrder::kShuffled)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("d.bin has 4 tokens; one sequence of 4 and its targets need 5"));
  EXPECT_TRUE(GptSampleSource::Open(Options({{Make("d", 0, 5)}}, SampleOrder::kShuffled)).ok());
}

TEST_F(GptSampleSourceTest, RefusesBadOptions) {
  GptSampleSourceOptions options = Options({{Make("d", 0, 100)}}, SampleOrder::kShuffled);
  options.sequence_length = 0;
  EXPECT_EQ(GptSampleSource::Open(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = Options({}, SampleOrder::kShuffled);
  EXPECT_EQ(GptSampleSource::Open(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = Options({{directory_.File("missing")}}, SampleOrder::kShuffled);
  EXPECT_EQ(GptSampleSource::Open(options).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster
