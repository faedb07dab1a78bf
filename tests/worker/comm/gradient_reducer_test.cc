#include "worker/comm/gradient_reducer.h"

#include <gtest/gtest.h>

#include <algorithm>
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

// A naive sum, with a buffer of its own: it may be given any of the parts as output.
void SumInOrder(absl::Span<float* const> parts, float* out, int64_t elements) {
  std::vector<float> sums(parts[0], parts[0] + elements);
  for (size_t part = 1; part < parts.size(); ++part) {
    for (int64_t i = 0; i < elements; ++i) sums[static_cast<size_t>(i)] += parts[part][i];
  }
  std::copy(sums.begin(), sums.end(), out);
}

// Cuts a region into buckets of two segments, and each segment evenly over the ranks.
std::vector<GradientBucket> CutIntoBuckets(absl::Span<float> region, int64_t bucket_elements, int size) {
  std::vector<GradientBucket> buckets;
  for (size_t begin = 0; begin < region.size(); begin += static_cast<size_t>(bucket_elements)) {
    const absl::Span<float> bucket = region.subspan(begin, static_cast<size_t>(bucket_elements));
    const size_t half = bucket.size() / 2;
    buckets.emplace_back();
    for (const absl::Span<float> segment : {bucket.first(half), bucket.subspan(half)}) {
      buckets.back().emplace_back();
      for (int rank = 0; rank < size; ++rank) {
        const size_t first = segment.size() * static_cast<size_t>(rank) / static_cast<size_t>(size);
        const size_t last = segment.size() * static_cast<size_t>(rank + 1) / static_cast<size_t>(size);
        buckets.back().back().push_back({segment.data() + first, static_cast<int64_t>(last - first)});
      }
    }
  }
  return buckets;
}

// Two buckets' parts from the others, and not an element more.
int64_t ScratchElements(const std::vector<GradientBucket>& buckets, int rank, int size) {
  int64_t most = 0;
  for (const GradientBucket& bucket : buckets) {
    int64_t own = 0;
    for (const std::vector<GradientRun>& segment : bucket) own += segment[static_cast<size_t>(rank)].elements;
    most = std::max(most, own);
  }
  return 2 * (size - 1) * most;
}

// Reduces on every rank, and compares bits with the definition: everywhere, or where this rank sums.
RankBody SumAndCompare(int64_t elements, int64_t bucket_elements, bool gather, const std::vector<float>& expected) {
  return [=, &expected](Communicator& group) -> absl::Status {
    constexpr float kGuard = 12345;
    std::vector<float> region = GradientsOf(group.rank(), elements);
    const std::vector<GradientBucket> buckets = CutIntoBuckets(absl::MakeSpan(region), bucket_elements, group.size());
    std::vector<float> scratch(static_cast<size_t>(ScratchElements(buckets, group.rank(), group.size())));
    scratch.push_back(kGuard);
    GradientReducer reducer(group, absl::MakeSpan(scratch).first(scratch.size() - 1),
                            {.gather = gather, .sum = SumInOrder});
    for (const GradientBucket& bucket : buckets) MUSTER_RETURN_IF_ERROR(reducer.Start(bucket));
    MUSTER_RETURN_IF_ERROR(reducer.Finish());
    EXPECT_EQ(scratch.back(), kGuard);
    for (const GradientBucket& bucket : buckets) {
      for (const std::vector<GradientRun>& segment : bucket) {
        for (int rank = 0; rank < group.size(); ++rank) {
          if (!gather && rank != group.rank()) continue;
          const GradientRun& run = segment[static_cast<size_t>(rank)];
          EXPECT_TRUE(SameBits({run.data, static_cast<size_t>(run.elements)},
                               absl::MakeSpan(expected).subspan(static_cast<size_t>(run.data - region.data()),
                                                                static_cast<size_t>(run.elements))))
              << "rank " << group.rank() << " of " << group.size() << ", bucket of " << bucket_elements;
        }
      }
    }
    return absl::OkStatus();
  };
}

TEST_P(GradientReducerTest, TheSumIsInRankOrderWhateverTheBucketAndTheNumberOfRanks) {
  constexpr int64_t kElements = 10007;  // prime: no bucket and no part divides it
  for (int size = 1; size <= 5; ++size) {
    const std::vector<float> expected = SumInRankOrder(size, kElements);
    for (const int64_t bucket_elements : {640, 4096, 1 << 20}) {
      for (const bool gather : {true, false}) {
        EXPECT_TRUE(AllOk(
            GetParam().run(size, SumAndCompare(kElements, bucket_elements, gather, expected), absl::Seconds(60))));
      }
    }
  }
}

TEST_P(GradientReducerTest, RunsOfNothingAreLeftOut) {
  for (const int64_t elements : {0, 1, 3, 17, 33}) {
    const std::vector<float> expected = SumInRankOrder(4, elements);
    EXPECT_TRUE(AllOk(GetParam().run(4, SumAndCompare(elements, 8, /*gather=*/true, expected), absl::Seconds(60))));
  }
}

TEST_P(GradientReducerTest, ReducesAgainAfterFinish) {
  const std::vector<float> once = SumInRankOrder(3, 100);
  EXPECT_TRUE(AllOk(GetParam().run(
      3,
      [&](Communicator& group) -> absl::Status {
        std::vector<float> scratch(2 * 2 * 100);
        GradientReducer reducer(group, absl::MakeSpan(scratch), {.sum = SumInOrder});
        for (int step = 0; step < 3; ++step) {
          std::vector<float> region = GradientsOf(group.rank(), 100);
          const std::vector<GradientBucket> buckets = CutIntoBuckets(absl::MakeSpan(region), 30, group.size());
          for (const GradientBucket& bucket : buckets) MUSTER_RETURN_IF_ERROR(reducer.Start(bucket));
          MUSTER_RETURN_IF_ERROR(reducer.Finish());
          EXPECT_TRUE(SameBits(region, once)) << "step " << step;
        }
        return absl::OkStatus();
      },
      absl::Seconds(60))));
}

TEST(GradientReducerTestValues, HaveOtherSumsInAnotherOrder) {
  // Guards the tests above: if no order of these values gave other bits, they would prove nothing.
  std::vector<float> a = GradientsOf(0, 1000), b = GradientsOf(1, 1000), c = GradientsOf(2, 1000);
  std::vector<float> forward(1000), backward(1000);
  SumInOrder({a.data(), b.data(), c.data()}, forward.data(), 1000);
  SumInOrder({c.data(), b.data(), a.data()}, backward.data(), 1000);
  EXPECT_FALSE(SameBits(forward, backward));
}

}  // namespace
}  // namespace muster
