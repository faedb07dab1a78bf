// The program as a person runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/exit_codes.h"
#include "common/formats/checkpoint_reader.h"
#include "common/formats/hugging_face_export.h"
#include "common/formats/hugging_face_self_check.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_checkpoint.h"
#include "tests/worker/rank/tiny_job.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Outcome {
  int exit_code = -1;
  std::string output;  // stdout and stderr
};

// `before`: shell text ahead of the command.
Outcome RunRank(const std::string& arguments, const std::string& before = "") {
  Outcome outcome;
  FILE* pipe = popen(absl::StrCat(before, MUSTER_RANK_PROGRAM, " ", arguments, " 2>&1").c_str(), "r");
  char buffer[4096];
  while (const size_t count = fread(buffer, 1, sizeof(buffer), pipe)) outcome.output.append(buffer, count);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

// The line that begins so.
std::string Line(const std::string& text, const std::string& beginning) {
  const size_t begin = text.find(beginning);
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

class RankProgramTest : public testing::Test {
 protected:
  Outcome RunLocal(const std::string& yaml, const std::string& flags = "") {
    return RunRank(absl::StrCat("--local ", directory_.Put("tiny.yaml", yaml), " --data-root ", directory_.path(),
                                " --checkpoint-root ", directory_.path(), " ", flags));
  }

  TemporaryDirectory directory_;
};

TEST_F(RankProgramTest, LocalTrainsAWholeJobFromItsFile) {
  const Outcome outcome = RunLocal(TinyJob(directory_, 2, 2));
  EXPECT_EQ(outcome.exit_code, kExitCompleted) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("step 1/8  loss 3."));
  EXPECT_THAT(outcome.output, HasSubstr("step 8/8  loss "));
  EXPECT_THAT(outcome.output, HasSubstr("validation after step 8"));
  EXPECT_TRUE(std::filesystem::exists(directory_.File("ckpt/local/attempt-1/step-8/manifest.json")));
}

TEST_F(RankProgramTest, LocalGivesTheSameLossHoweverTheModelIsCut) {
  const std::string whole = RunLocal(TinyJob(directory_, 1, 1)).output;
  const std::string cut = RunLocal(TinyJob(directory_, 1, 2)).output;
  const auto loss = [](const std::string& output) {
    const std::string line = Line(output, "step 8/8");
    return line.substr(0, line.find("gradient"));
  };
  EXPECT_THAT(loss(whole), HasSubstr("loss"));
  EXPECT_EQ(loss(whole), loss(cut));
}

// A job that starts from the model in DIRECTORY/model, which leaves its shape to the model's config.json.
std::string TunedJob(const TemporaryDirectory& directory) {
  ModelShape shape = TinyGpt2();
  shape.vocab = kTinyVocab;
  CheckpointReader reader = CheckpointReader::Open(WriteTinyCheckpoint(directory.File("exported"), shape)).value();
  HuggingFaceExportOptions options;
  options.force = true;
  EXPECT_TRUE(ExportHuggingFace(reader, directory.File("model"), options).ok());
  std::string yaml = TinyJob(directory, 1, 2);
  const size_t at = yaml.find("model: {");
  return yaml.replace(at, yaml.find('}', at) + 1 - at, "model: {init_from: model}");
}

TEST_F(RankProgramTest, LocalStartsFromAHuggingFaceModelOfAnyCut) {
  const Outcome outcome = RunLocal(TunedJob(directory_));
  EXPECT_EQ(outcome.exit_code, kExitCompleted) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("INITIAL_WEIGHTS_UNCHECKED: initial weights from "));
  EXPECT_THAT(Line(outcome.output, "step 1/8"), Not(HasSubstr("loss 3.4"))) << "ln 32 is the loss of random weights";
}

TEST_F(RankProgramTest, LocalRefusesAModelThatDoesNotGiveItsLogits) {
  const std::string yaml = TunedJob(directory_);
  LogitsSelfCheck check{.computed_by = "another program", .tokens = {1, 2, 3}, .log_probabilities = {-40, -40}};
  directory_.Put(absl::StrCat("model/", kSelfCheckFileName), SerializeSelfCheck(check));
  const Outcome outcome = RunLocal(yaml);
  EXPECT_EQ(outcome.exit_code, kExitUserError) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("the model does not compute what muster_selfcheck.json says"));
  EXPECT_THAT(outcome.output, HasSubstr("as another program computed it"));
}

TEST_F(RankProgramTest, LocalKeepsTheTokenizerOfItsDataBesideTheCheckpoints) {
  const std::string yaml = TinyJob(directory_, 1, 1);
  std::filesystem::create_directory(directory_.File("train.tokenizer"));
  directory_.Put("train.tokenizer/tokenizer.json", "{}");
  EXPECT_EQ(RunLocal(yaml).exit_code, kExitCompleted);
  EXPECT_EQ(directory_.Get("ckpt/local/tokenizer/tokenizer.json"), "{}");
}

TEST_F(RankProgramTest, LocalGoesOnFromItsOwnCheckpointWithTheSameLosses) {
  const std::string yaml = TinyJob(directory_, 1, 2);
  const Outcome whole = RunLocal(yaml);
  std::filesystem::remove_all(directory_.File("ckpt/local/attempt-1/step-8"));
  const Outcome resumed = RunLocal(yaml, "--resume");
  EXPECT_EQ(resumed.exit_code, kExitCompleted) << resumed.output;
  EXPECT_EQ(Line(resumed.output, "step 4/8"), "") << "it has that behind it";
  const auto loss = [](const Outcome& outcome, const std::string& step) {
    const std::string line = Line(outcome.output, step);
    return line.substr(0, line.find("gradient"));
  };
  EXPECT_THAT(loss(whole, "step 5/8"), HasSubstr("loss"));
  for (const char* step : {"step 5/8", "step 8/8"}) EXPECT_EQ(loss(resumed, step), loss(whole, step));
  EXPECT_TRUE(std::filesystem::exists(directory_.File("ckpt/local/attempt-2/step-8/manifest.json")));
}

TEST_F(RankProgramTest, LocalSaysWhenThereIsNothingToResumeFrom) {
  const Outcome outcome = RunLocal(TinyJob(directory_, 1, 1), "--resume");
  EXPECT_EQ(outcome.exit_code, kExitUserError);
  EXPECT_THAT(outcome.output, HasSubstr("--resume: there is no checkpoint in "));
}

TEST_F(RankProgramTest, LocalNamesFileLineAndFieldOfABadJob) {
  const Outcome outcome = RunLocal(TinyJob(directory_, 2, 2) + "polcy: {}\n");
  EXPECT_EQ(outcome.exit_code, kExitUserError);
  EXPECT_THAT(outcome.output, HasSubstr("tiny.yaml:8"));
  EXPECT_THAT(outcome.output, HasSubstr("polcy"));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("ckpt")));
}

TEST_F(RankProgramTest, LocalNamesTheDataThatIsMissing) {
  const std::string yaml = TinyJob(directory_, 1, 1);
  std::filesystem::remove(directory_.File("train.idx"));
  const Outcome outcome = RunLocal(yaml);
  EXPECT_EQ(outcome.exit_code, kExitUserError);
  EXPECT_THAT(outcome.output, HasSubstr("muster-rank: error: data.train: "));
  EXPECT_THAT(outcome.output, HasSubstr("train.idx"));
}

TEST_F(RankProgramTest, MemoryThatIsRefusedEndsItWithItsOwnCode) {
  const std::string yaml = TinyJob(directory_, 1, 1, /*steps=*/1);
  std::string large = yaml;
  large.replace(large.find("hidden: 16"), 10, "hidden: 2048");  // 1.6 GB of states
  const std::string job = directory_.Put("large.yaml", large);
  const Outcome outcome = RunRank(
      absl::StrCat("--local ", job, " --data-root ", directory_.path(), " --checkpoint-root ", directory_.path()),
      /*before=*/"ulimit -d 200000; ");
  EXPECT_EQ(outcome.exit_code, kExitOutOfMemory) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("muster-rank: error: "));
}

TEST_F(RankProgramTest, WrongFlagsExitWithTwo) {
  EXPECT_EQ(RunRank("--no-such-flag").exit_code, 2);
  const Outcome none = RunRank("");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.output, HasSubstr("--local"));
  EXPECT_EQ(RunRank("--assignment x").exit_code, 2);
}

TEST_F(RankProgramTest, SaysItsVersionAndHelp) {
  EXPECT_THAT(RunRank("--version").output, HasSubstr("muster-rank "));
  const Outcome help = RunRank("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, HasSubstr("gdb --args muster-rank --local"));
}

}  // namespace
}  // namespace muster
