#include "common/rpc/metric_catalog.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/match.h"

namespace muster {
namespace {

TEST(MetricCatalogTest, NamesFollowTheConventions) {
  std::set<std::string> names;
  for (const MetricInfo& metric : MetricCatalog()) {
    const std::string name = metric.name;
    EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
    EXPECT_TRUE(absl::StartsWith(name, "muster_")) << name;
    EXPECT_EQ(absl::EndsWith(name, "_total"), metric.kind == MetricKind::kCounter) << name;
    EXPECT_EQ(std::string(metric.unit) == "bytes", absl::EndsWith(name, "_bytes")) << name;
  }
  EXPECT_STREQ(MetricOf("muster_job_loss").unit, "nats per token");
}

// With MUSTER_WRITE_DOCS=1 in the environment it writes the page instead.
TEST(MetricCatalogTest, DocumentationIsWhatTheCatalogSays) {
  const char* path = "docs/metrics.md";
  if (std::getenv("MUSTER_WRITE_DOCS") != nullptr) std::ofstream(path) << MetricDocumentation();
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path << " is missing";
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), MetricDocumentation())
      << "write it again with: MUSTER_WRITE_DOCS=1 build/tests/common_rpc_test --gtest_filter='MetricCatalog*'";
}

}  // namespace
}  // namespace muster
