#include "common/spec/job_file_reference.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/spec/field_rules.h"

namespace muster {
namespace {

TEST(JobFileReferenceTest, NamesEveryField) {
  const std::string text = JobFileReference();
  for (const FieldRule& rule : FieldRules()) {
    const bool heads_a_section = !absl::StrContains(rule.path, '.') && rule.unit[0] == '\0';
    const std::string wanted = heads_a_section ? absl::StrCat("## ", rule.path, ": ") : absl::StrCat("| `", rule.path);
    EXPECT_TRUE(absl::StrContains(text, wanted)) << wanted;
  }
}

// With MUSTER_WRITE_DOCS=1 in the environment it writes the page instead.
TEST(JobFileReferenceTest, PageIsWhatTheTableSays) {
  const char* path = "docs/job-file.md";
  if (std::getenv("MUSTER_WRITE_DOCS") != nullptr) std::ofstream(path) << JobFileReference();
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path << " is missing";
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), JobFileReference())
      << "write it again with: MUSTER_WRITE_DOCS=1 build/tests/job_file_reference_test";
}

}  // namespace
}  // namespace muster
