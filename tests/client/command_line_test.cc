#include "client/command_line.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace muster {
namespace {

std::variant<Invocation, ExitCode> Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "muster");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data());
}

template <typename Options>
Options VerbOf(const std::variant<Invocation, ExitCode>& parsed) {
  return std::get<Options>(std::get<Invocation>(parsed).verb);
}

TEST(CommandLineTest, GlobalFlagsMayStandBeforeOrBehindTheVerb) {
  for (const auto& arguments : {std::vector<std::string>{"-o", "json", "--coordinator", "h:1", "get", "jobs"},
                                {"get", "jobs", "-o", "json", "--coordinator", "h:1"}}) {
    const auto parsed = Parse(arguments);
    ASSERT_TRUE(std::holds_alternative<Invocation>(parsed));
    EXPECT_EQ(std::get<Invocation>(parsed).global.output, OutputFormat::kJson);
    EXPECT_EQ(std::get<Invocation>(parsed).global.coordinator, "h:1");
  }
}

TEST(CommandLineTest, SamplingHasItsDefaultsAndRefusesWhatCannotBe) {
  const auto options = VerbOf<SampleOptions>(Parse({"sample", "job@20", "Once", "--top-k", "5"}));
  EXPECT_EQ(options.checkpoint, "job@20");
  EXPECT_EQ(options.prompt, "Once");
  EXPECT_EQ(options.top_k, 5);
  EXPECT_EQ(options.temperature, 1);
  EXPECT_EQ(std::get<ExitCode>(Parse({"sample", "job", "--temperature", "-1"})), ExitCode::kUsage);
  EXPECT_EQ(std::get<ExitCode>(Parse({"export", "job"})), ExitCode::kUsage) << "a directory is needed";
}

TEST(CommandLineTest, TheCoordinatorComesFromTheEnvironmentAndTheFlagWins) {
  ASSERT_EQ(setenv("MUSTER_COORDINATOR", "env:1", 1), 0);
  EXPECT_EQ(std::get<Invocation>(Parse({"get", "workers"})).global.coordinator, "env:1");
  EXPECT_EQ(std::get<Invocation>(Parse({"get", "workers", "--coordinator", "flag:1"})).global.coordinator, "flag:1");
  unsetenv("MUSTER_COORDINATOR");
}

TEST(CommandLineTest, AVerbsOptionsReachIt) {
  const auto submit = VerbOf<SubmitOptions>(Parse({"submit", "job.yaml", "--watch", "--wait-timeout", "5"}));
  EXPECT_EQ(submit.file, "job.yaml");
  EXPECT_TRUE(submit.watch);
  EXPECT_EQ(submit.wait_timeout_seconds, 5);
  const auto logs = VerbOf<LogsOptions>(Parse({"logs", "job-1", "-f", "--rank", "0", "--rank", "2"}));
  EXPECT_TRUE(logs.follow);
  EXPECT_EQ(logs.ranks, (std::vector<int64_t>{0, 2}));
  const auto tokenize =
      VerbOf<DataTokenizeOptions>(Parse({"data", "tokenize", "--tokenizer", "bytes", "a", "b", "-o", "out"}));
  EXPECT_EQ(tokenize.inputs, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(tokenize.output_prefix, "out");
}

TEST(CommandLineTest, WrongUsageExitsWithTwoAndHelpWithZero) {
  for (const auto& arguments : {std::vector<std::string>{},
                                {"frobnicate"},
                                {"get"},
                                {"submit", "f", "--wait", "--watch"},
                                {"get", "jobs", "-o", "xml"},
                                {"logs", "j", "--rank", "-1"}}) {
    const auto parsed = Parse(arguments);
    ASSERT_TRUE(std::holds_alternative<ExitCode>(parsed));
    EXPECT_EQ(std::get<ExitCode>(parsed), ExitCode::kUsage);
  }
  EXPECT_EQ(std::get<ExitCode>(Parse({"--help"})), ExitCode::kOk);
  EXPECT_EQ(std::get<ExitCode>(Parse({"--version"})), ExitCode::kOk);
}

}  // namespace
}  // namespace muster
