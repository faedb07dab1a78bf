#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/coordinator_harness.h"

namespace muster {
namespace {

TEST(ServerMetricsTest, RestartsOfEveryCauseAreSeriesFromTheStart) {
  CoordinatorHarness harness;
  ServerMetrics metrics("1");
  metrics.Update(*harness.table, *harness.registry);
  for (const char* cause : {"CRASHED", "WORKER_LOST", "OUT_OF_MEMORY", "BAD_CHECKPOINT"}) {
    EXPECT_THAT(metrics.Text(), testing::HasSubstr(std::string("muster_restarts_total{cause=\"") + cause + "\"} 0\n"));
  }
}

}  // namespace
}  // namespace muster
