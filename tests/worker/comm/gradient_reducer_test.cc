#include "worker/comm/gradient_reducer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "common/base/status_macros.h"
#include "tests/support/rank_harness.h"
#include "tests/worker/comm/back_ends.h"

namespace muster {
namespace {

class GradientReducerTest : public testing::TestWithParam<BackEnd> {};

INSTANTIATE_TEST_SUITE_P(BackEnds, GradientReducerTest, testing::ValuesIn(BackEnds()),
                         [](const testing::TestParamInfo<BackEnd>& info) { return std::string(info.param.name); });

// Magnitudes over twelve orders, so that nearly every sum rounds and another order gives other bits.
std::vector<float> GradientsOf(int rank, int64_t elements) {
  std::mt19937 random(static_cast<uint32_t>(1000 + rank));
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<float> values(static_cast<size_t>(elements));
  for (float& value : values) value = std::ldexp(mantissa(random), exponent(random));
  return values;
}

// The definition: in rank order, one element at a time.
std::vector<float> SumInRankOrder(int size, int64_t elements) {
  std::vector<float> sums = GradientsOf(0, elements);
  for (int rank = 1; rank < size; ++rank) {
    const std::vector<float> values = GradientsOf(rank, elements);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] + values[i];
  }
  return sums;
}

bool SameBits(absl::Span<const float> a, absl::Span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// Sums on every rank with exactly the planned scratch, and compares bits with the definition.
RankBody SumAndCompare(int64_t elements, int64_t bucket_elements, const std::vector<float>& expected) {
  return [=, &expected](Communicator& group) -> absl::Status {
    constexpr float kGuard = 12345;
    std::vector<float> region = GradientsOf(group.rank(), elements);
    region.push_back(kGuard);
    std::vector<float> scratch(
        static_cast<size_t>(GradientReducerScratchBytes(elements, group.size(), bucket_elements)) / sizeof(float));
    scratch.push_back(kGuard);
    GradientReducerOptions options;
    options.bucket_elements = bucket_elements;
    MUSTER_RETURN_IF_ERROR(SumGradients(group, absl::MakeSpan(region).first(static_cast<size_t>(elements)),
                                        absl::MakeSpan(scratch).first(scratch.size() - 1), options));
    EXPECT_EQ(region.back(), kGuard);
    EXPECT_EQ(scratch.back(), kGuard);
    EXPECT_TRUE(SameBits(absl::MakeSpan(region).first(static_cast<size_t>(elements)), expected))
        << "rank " << group.rank() << " of " << group.size() << ", bucket of " << bucket_elements;
    return absl::OkStatus();
  };
}

TEST_P(GradientReducerTest, TheSumIsInRankOrderWhateverTheBucketAndTheNumberOfRanks) {
  constexpr int64_t kElements = 10007;  // prime: no bucket and no chunk divides it
  for (int size = 1; size <= 5; ++size) {
    const std::vector<float> expected = SumInRankOrder(size, kElements);
    for (int64_t bucket_elements : {64, 1000, 4096, 10007, 1 << 20}) {
      EXPECT_TRUE(AllOk(GetParam().run(size, SumAndCompare(kElements, bucket_elements, expected), absl::Seconds(60))));
    }
  }
}

TEST_P(GradientReducerTest, RegionsSmallerThanTheGroupAndEmptyOnesAreSummed) {
  for (int64_t elements : {0, 1, 3, 17, 33}) {
    const std::vector<float> expected = SumInRankOrder(4, elements);
    EXPECT_TRUE(
        AllOk(GetParam().run(4, SumAndCompare(elements, kReductionBucketElements, expected), absl::Seconds(60))));
  }
}

TEST_P(GradientReducerTest, BucketsOfTheDefaultSizeOverlap) {
  const int64_t elements = 5 * kReductionBucketElements / 2;
  const std::vector<float> expected = SumInRankOrder(3, elements);
  EXPECT_TRUE(AllOk(GetParam().run(3, SumAndCompare(elements, kReductionBucketElements, expected), absl::Seconds(60))));
}

TEST(SumPartsOnHostTest, TheTestsOwnOrderMatters) {
  // Guards the tests above: if no order of these values gave other bits, they would prove nothing.
  const std::vector<float> a = GradientsOf(0, 1000), b = GradientsOf(1, 1000), c = GradientsOf(2, 1000);
  std::vector<float> forward(1000), backward(1000);
  SumPartsOnHost({a.data(), b.data(), c.data()}, forward.data(), 1000);
  SumPartsOnHost({c.data(), b.data(), a.data()}, backward.data(), 1000);
  EXPECT_FALSE(SameBits(forward, backward));
}

TEST(SumPartsOnHostTest, TheOutputMayBeAnyOfTheParts) {
  const std::vector<float> expected = SumInRankOrder(3, 3000);
  for (size_t in_place = 0; in_place < 3; ++in_place) {
    std::vector<std::vector<float>> parts = {GradientsOf(0, 3000), GradientsOf(1, 3000), GradientsOf(2, 3000)};
    SumPartsOnHost({parts[0].data(), parts[1].data(), parts[2].data()}, parts[in_place].data(), 3000);
    EXPECT_TRUE(SameBits(parts[in_place], expected)) << in_place;
  }
}

TEST(GradientReducerScratchTest, OneRankNeedsNoneAndABucketBoundsTheRest) {
  EXPECT_EQ(GradientReducerScratchBytes(1 << 30, 1), 0);
  EXPECT_EQ(GradientReducerScratchBytes(1 << 30, 2), 2 * kReductionBucketElements / 2 * 4);
  EXPECT_EQ(GradientReducerScratchBytes(100, 4), 2 * 3 * 32 * 4);
}

}  // namespace
}  // namespace muster
