// muster-generate as `muster sample` and `muster export` run it.
#include <sys/wait.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/formats/byte_tokenizer.h"
#include "common/formats/hugging_face_self_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_checkpoint.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Outcome {
  int exit_code = -1;
  std::string output;  // stdout and stderr
};

class GenerateProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shape_.vocab = kByteVocab;
    WriteTinyCheckpoint(root_.File("ckpt"), shape_);
  }
  Outcome Run(const std::string& arguments) {
    Outcome outcome;
    FILE* pipe = popen(absl::StrCat(MUSTER_GENERATE_PROGRAM, " ", arguments, " 2>&1").c_str(), "r");
    char buffer[4096];
    while (const size_t count = fread(buffer, 1, sizeof(buffer), pipe)) outcome.output.append(buffer, count);
    const int status = pclose(pipe);
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }
  std::string From() const { return absl::StrCat("--from=", root_.File("ckpt")); }

  TemporaryDirectory root_;
  ModelShape shape_ = TinyGpt2();
};

TEST_F(GenerateProgramTest, ContinuesATextAsOftenAsAsked) {
  const Outcome outcome = Run(absl::StrCat(From(), " --prompt='ab' --tokens=30 --temperature=0"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, StartsWith("ab"));
  // More than the context of 16: the text goes on from its last tokens. A byte each and the newline.
  EXPECT_EQ(outcome.output.size(), 33u);
  EXPECT_EQ(Run(absl::StrCat(From(), " --prompt='ab' --tokens=30 --temperature=0 --threads=1")).output, outcome.output);
}

TEST_F(GenerateProgramTest, EqualSeedsGiveEqualTexts) {
  const std::string arguments = absl::StrCat(From(), " --prompt=x --tokens=40 --seed=");
  EXPECT_EQ(Run(arguments + "3").output, Run(arguments + "3").output);
  EXPECT_NE(Run(arguments + "3").output, Run(arguments + "4").output);
}

TEST_F(GenerateProgramTest, WritesTheSelfCheckOfACheckpoint) {
  const Outcome outcome = Run(absl::StrCat(From(), " --self-check=", root_.File("check.json")));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  const auto check = ParseSelfCheck(ReadFile(root_.File("check.json")).value(), "check.json", shape_);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->log_probabilities.size(), 15u);
  EXPECT_THAT(check->computed_by, StartsWith("muster "));
}

TEST_F(GenerateProgramTest, SaysWhatIsMissing) {
  const Outcome nothing = Run(absl::StrCat("--from=", root_.File("none")));
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_THAT(nothing.output, HasSubstr("muster-generate: error: "));
  EXPECT_THAT(nothing.output, HasSubstr("none does not exist"));

  WriteTinyCheckpoint(root_.File("other"), TinyGpt2());
  const Outcome unknown = Run(absl::StrCat("--from=", root_.File("other"), " --prompt=a"));
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.output, HasSubstr("--tokenizer"));
  EXPECT_EQ(Run("--no-such-flag").exit_code, 2);
}

}  // namespace
}  // namespace muster
