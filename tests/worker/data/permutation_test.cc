#include "worker/data/permutation.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

std::vector<int64_t> Order(int64_t size, uint64_t seed, uint64_t stream = 0, uint64_t epoch = 0) {
  const Permutation permutation(size, seed, stream, epoch);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size; ++i) order.push_back(permutation(i));
  return order;
}

bool IsBijection(std::vector<int64_t> order) {
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

TEST(Permutation, IsABijectionOfEverySize) {
  for (int64_t size = 1; size <= 300; ++size) EXPECT_TRUE(IsBijection(Order(size, 7))) << size;
  for (int64_t size : {1023, 1024, 1025, 65535, 65536, 65537, 100003}) EXPECT_TRUE(IsBijection(Order(size, 7))) << size;
}

TEST(Permutation, StaysInsideHugeRanges) {
  for (const int64_t size : {int64_t{1} << 40, (int64_t{1} << 40) + 1, int64_t{1} << 62}) {
    const Permutation permutation(size, 1, 2, 3);
    for (int64_t index : {int64_t{0}, int64_t{1}, size / 2, size - 1}) {
      EXPECT_GE(permutation(index), 0);
      EXPECT_LT(permutation(index), size);
    }
  }
}

TEST(Permutation, DiffersBySeedStreamAndEpoch) {
  const std::vector<int64_t> base = Order(1000, 1, 0, 0);
  EXPECT_EQ(base, Order(1000, 1, 0, 0));
  EXPECT_NE(base, Order(1000, 2, 0, 0));
  EXPECT_NE(base, Order(1000, 1, 1, 0));
  EXPECT_NE(base, Order(1000, 1, 0, 1));
  EXPECT_NE(Order(1000, 1, 1, 0), Order(1000, 1, 0, 1));
}

TEST(Permutation, LeavesNeighboursFarApart) {
  // Of a random order two neighbours are size/3 apart on average; 1 for the identity.
  const std::vector<int64_t> order = Order(10000, 5);
  double distance = 0;
  for (size_t i = 1; i < order.size(); ++i) distance += static_cast<double>(std::abs(order[i] - order[i - 1]));
  EXPECT_NEAR(distance / 9999, 10000.0 / 3, 100);
}

TEST(Permutation, IsTheSameOnEveryMachineAndVersion) {
  // From an implementation in another language. A change of these values changes the data order of every job that is
  // resumed: it needs a decision, not a new number here.
  EXPECT_EQ(Order(8, 1234), (std::vector<int64_t>{2, 4, 0, 7, 3, 5, 6, 1}));
}

}  // namespace
}  // namespace muster
