#include "client/output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "muster/v1/job.pb.h"

namespace muster {
namespace {

TEST(OutputTest, JsonHasTheSchemasNamesAndEveryPrimitiveField) {
  v1::Job job;
  job.set_id("job-1");
  job.mutable_spec()->mutable_training()->set_global_batch(0);
  const nlohmann::json json = nlohmann::json::parse(ToJson(job));
  EXPECT_EQ(json["id"], "job-1");
  EXPECT_EQ(json["state_reason"], "");
  EXPECT_EQ(json["spec"]["training"]["global_batch"], "0");  // 64-bit integers are strings in protobuf JSON
  EXPECT_TRUE(json["ranks"].is_array());
}

TEST(OutputTest, YamlKeepsStringsStrings) {
  v1::Job job;
  job.set_id("7");
  job.set_state(v1::RUNNING);
  const std::string yaml = ToYaml(job);
  EXPECT_NE(yaml.find("id: \"7\"\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("state: \"RUNNING\"\n"), std::string::npos) << yaml;
}

TEST(OutputTest, ATableAlignsByWhatTheTerminalShows) {
  Table table({{"NAME"}, {"STEP", Table::Align::kRight}});
  table.AddRow({"\033[32m█é\033[0m", "7"});
  table.AddRow({"long-name", "1000"});
  EXPECT_EQ(table.ToString(),
            "NAME       STEP\n"
            "\033[32m█é\033[0m            7\n"
            "long-name  1000\n");
}

TEST(OutputTest, FiguresAreReadable) {
  EXPECT_EQ(FormatCount(1'313'626'112), "1,313,626,112");
  EXPECT_EQ(FormatCount(-1000), "-1,000");
  EXPECT_EQ(FormatCount(12), "12");
  EXPECT_EQ(FormatRate(8412.3), "8,412");
  EXPECT_EQ(FormatRate(41300), "41.3k");
}

}  // namespace
}  // namespace muster
