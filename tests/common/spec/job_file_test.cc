#include "common/spec/job_file.h"

#include "common/spec/job_file_writer.h"
#include "common/spec/resolve.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/common/spec/good_job.h"

namespace muster {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::HasSubstr;
using testing::StartsWith;

struct BadFile {
  const char* title;
  const char* old;          // part of GoodJob
  const char* replacement;  //
  const char* place;        // where the first line of the message begins: "bad.yaml:5: model.layrs: "
  const char* fragment;     // in the message, with its suggestion
};

const BadFile kBadFiles[] = {
    {"unknown key", "  layers: 2", "  layers: 2\n  layrs: 3", "bad.yaml:5: model.layrs: unknown key",
     "did you mean layers?"},
    {"unknown key instead of a required one", "  layers: 2", "  layrs: 3",
     "bad.yaml:4: model.layrs: ", "did you mean layers?"},
    {"key of another section", "name: good", "name: good\nmicro_batch: 2",
     "bad.yaml:2: micro_batch: ", "its place is training.micro_batch"},
    {"unknown key like none", "  layers: 2", "  layers: 2\n  zzzzzzzz: 3",
     "bad.yaml:5: model.zzzzzzzz: ", "unknown key"},
    {"key by its name in the schema",
     "memory_per_rank:", "memory_per_rank_bytes:", "bad.yaml:19: resources.memory_per_rank_bytes: ", "unknown key"},
    {"duplicate key", "  layers: 2", "  layers: 2\n  layers: 3", "bad.yaml:5: model.layers: ", "twice"},
    {"duplicate section", "resources:", "parallelism: {data: 4}\nresources:", "bad.yaml:19: parallelism: ", "twice"},
    {"text for a number", "  layers: 2", "  layers: two",
     "bad.yaml:4: model.layers: ", "\"two\" is not a whole number"},
    {"quoted number", "  layers: 2", "  layers: \"2\"",
     "bad.yaml:4: model.layers: ", "must be a whole number, is the text \"2\""},
    {"list for a number", "  steps: 4", "  steps: [4]", "bad.yaml:15: training.steps: ", "is a list"},
    {"map for a number", "  steps: 4", "  steps: {a: 4}", "bad.yaml:15: training.steps: ", "is a map"},
    {"number for a section", "parallelism: {data: 2, pipeline: 2}", "parallelism: 4",
     "bad.yaml:18: parallelism: ", "must be a map"},
    {"map for a list", "[{path: train}]", "{path: train}", "bad.yaml:10: data.train: ", "must be a list"},
    {"no value", "  layers: 2", "  layers:", "bad.yaml:4: model.layers: ", "has no value"},
    {"leading zero", "  layers: 2", "  layers: 010", "bad.yaml:4: model.layers: ", "\"010\" has a leading zero"},
    {"fraction for a count", "  layers: 2", "  layers: 2.5", "bad.yaml:4: model.layers: ", "whole number"},
    {"exponent for a count", "  steps: 4", "  steps: 4e3", "bad.yaml:15: training.steps: ", "whole number"},
    {"too large for the type", "  steps: 4", "  steps: 99999999999999999999",
     "bad.yaml:15: training.steps: ", "too large"},
    {"number for text", "name: good", "name: 12", "bad.yaml:1: name: ", "quote it"},
    {"yes for true", "  layers: 2", "  layers: 2\n  tied: yes", "bad.yaml:5: model.tied: ", "neither true nor false"},
    {"negative count", "  layers: 2", "  layers: -1", "bad.yaml:4: model.layers: ", "from 1 to 1000"},
    {"zero where zero is no default", "  micro_batch: 2", "  micro_batch: 0",
     "bad.yaml:13: training.micro_batch: ", "or auto"},
    {"auto where it is not known", "  layers: 2", "  layers: auto", "bad.yaml:4: model.layers: ", "\"auto\""},
    {"negative learning rate", "lr: 1e-3", "lr: -1", "bad.yaml:17: training.optimizer.adamw.lr: ", "above 0"},
    {"not a number for a rate", "lr: 1e-3", "lr: .nan",
     "bad.yaml:17: training.optimizer.adamw.lr: ", "is not a number"},
    {"infinite rate", "lr: 1e-3", "lr: 1e999", "bad.yaml:17: training.optimizer.adamw.lr: ", "\"1e999\""},
    {"size with an unknown unit", "512MiB", "512MegaBytes",
     "bad.yaml:19: resources.memory_per_rank: ", "\"512MegaBytes\" is not a size"},
    {"required field missing", "  vocab: 257\n", "", "bad.yaml:2: model.vocab: ", "required and missing"},
    {"required section missing", "resources: {ranks: 4, memory_per_rank: 512MiB}\n", "",
     "bad.yaml: resources: ", "required and missing"},
    {"field of a list's entry missing", "[{path: train}]", "[{weight: 1}]",
     "bad.yaml:10: data.train[0].path: ", "required and missing"},
    {"no training data", "[{path: train}]", "[]", "bad.yaml:10: data.train: ", "required and missing"},
    {"path that leaves the root", "{path: train}", "{path: ../../etc/passwd}",
     "bad.yaml:10: data.train[0].path: ", "leaves the worker's root"},
    {"absolute path", "{path: train}", "{path: /etc/passwd}", "bad.yaml:10: data.train[0].path: ", "absolute"},
    {"name with a slash", "name: good", "name: a/b", "bad.yaml:1: name: ", "\"a/b\" is not a name"},
    {"unknown choice", "family: gpt2", "family: gpt5",
     "bad.yaml:3: model.family: ", "\"gpt5\" is not one of gpt2, llama"},
    {"rotary positions with a head of odd width", "  family: gpt2\n  layers: 2\n  hidden: 64\n  heads: 2",
     "  family: llama\n  layers: 2\n  hidden: 66\n  heads: 2", "bad.yaml:6: model.heads: ", "33, an odd number"},
    {"precision of a later version", "precision: bf16", "precision: fp8",
     "bad.yaml:16: training.precision: ", "use fp32 or bf16 or fp16"},
    {"tensor parallelism that cuts heads", "{data: 2, pipeline: 2}", "{tensor: 4}",
     "bad.yaml:18: parallelism.tensor: ", "4 does not divide 2 heads"},
    {"ZeRO stage", "pipeline: 2}", "pipeline: 2, zero_stage: 3}",
     "bad.yaml:18: parallelism.zero_stage: ", "ZeRO stage 3 is not supported yet"},
    {"heads do not divide hidden", "  heads: 2", "  heads: 3",
     "bad.yaml:6: model.heads: ", "3 heads do not divide hidden 64"},
    {"layout is not the ranks", "{data: 2, pipeline: 2}", "{data: 2, pipeline: 3}",
     "bad.yaml:18: parallelism: ", "= 6 ranks, resources.ranks is 4"},
    {"batch not divisible by replicas", "global_batch: 16", "global_batch: 17",
     "bad.yaml:12: training.global_batch: ", "17 sequences are not divisible by 2 replicas"},
    {"micro-batch does not divide", "micro_batch: 2", "micro_batch: 3",
     "bad.yaml:13: training.micro_batch: ", "divisors: 1, 2, 4, 8"},
    {"sequence longer than context", "sequence_length: 64", "sequence_length: 128",
     "bad.yaml:14: training.sequence_length: ", "context is 64"},
    {"cuts that do not fit", "pipeline: 2}", "pipeline: 2, cuts: [7]}",
     "bad.yaml:18: parallelism.cuts: ", "1 ascending numbers from 1 to 5"},
    {"validation without data", "  steps: 4", "  steps: 4\n  validate_every_steps: 2",
     "bad.yaml:9: data.validation: ", "validate_every_steps"},
    {"warm-up longer than the job", "  steps: 4", "  steps: 4\n  schedule: {warmup_steps: 5}",
     "bad.yaml:16: training.schedule.warmup_steps: ", "more than training.steps 4"},
    {"no YAML", "  layers: 2", "  layers: {2", "bad.yaml:", "this is not YAML"},
    {"two documents", "resources:", "---\nresources:", "bad.yaml: ", "several documents"},
};

// What a user is told, whether the file cannot be read as a spec or the spec is wrong; empty when all is well.
std::string ErrorsOf(const std::string& name, const std::string& text) {
  const auto file = ParseJobFile(name, text);
  if (file.ok()) return file->Describe(file->problems);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(file.status().message());
}

TEST(JobFileTest, EachBadFileGetsOneMessageWithItsPlace) {
  ASSERT_EQ(ErrorsOf("good.yaml", GoodJob()), "");
  for (const BadFile& bad : kBadFiles) {
    const std::string message = ErrorsOf("bad.yaml", JobWith(bad.old, bad.replacement));
    EXPECT_THAT(message, StartsWith(bad.place)) << bad.title;
    EXPECT_THAT(message, HasSubstr(bad.fragment)) << bad.title;
    EXPECT_EQ(message.find("bad.yaml", 1), std::string::npos) << bad.title << ": more than one message: " << message;
  }
}

TEST(JobFileTest, AllErrorsOfAFileAreReportedInTheOrderOfItsLines) {
  std::string text = JobWith("  layers: 2", "  layers: two");
  text.replace(text.find("  steps: 4"), 10, "  stepps: 4");
  text.replace(text.find("name: good"), 10, "name: -x");
  const std::string message = ErrorsOf("bad.yaml", text);
  const size_t first = message.find("bad.yaml:1: name: ");
  const size_t second = message.find("bad.yaml:4: model.layers: ");
  const size_t third = message.find("bad.yaml:15: training.stepps: unknown key\n  did you mean steps?");
  EXPECT_EQ(first, 0u) << message;
  EXPECT_LT(first, second) << message;
  EXPECT_LT(second, third) << message;
  EXPECT_NE(third, std::string::npos) << message;
}

TEST(JobFileTest, EmptyAndUnreadableFilesAreNamed) {
  EXPECT_EQ(ParseJobFile("bad.yaml", "").status().message(), "bad.yaml: there is nothing in the file");
  EXPECT_EQ(ParseJobFile("bad.yaml", "# only a comment\n").status().message(),
            "bad.yaml: there is nothing in the file");
  const absl::Status missing = ReadJobFile("tests/no/such/file.yaml").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("tests/no/such/file.yaml"));
}

TEST(JobFileTest, ValuesArriveWhereTheyBelong) {
  std::string text = JobWith("data: 2, ", "data: auto, ");
  text += "labels: {team: research, \"run\": \"7\"}\ncheckpoint: {directory: a/b, every_steps: 2}\n";
  const auto file = ParseJobFile("good.yaml", text);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->problems, testing::IsEmpty());
  const v1::JobSpec& spec = file->spec;
  EXPECT_EQ(spec.name(), "good");
  EXPECT_EQ(spec.data().train(0).path(), "train");
  EXPECT_EQ(spec.parallelism().data(), 0);
  EXPECT_EQ(spec.resources().memory_per_rank_bytes(), int64_t{512} << 20);
  EXPECT_DOUBLE_EQ(spec.training().optimizer().adamw().lr(), 1e-3);
  EXPECT_FALSE(spec.training().has_clip_grad_norm());
  EXPECT_EQ(spec.labels().at("team"), "research");
  EXPECT_EQ(spec.labels().at("run"), "7");
  EXPECT_EQ(file->lines.at("training.steps"), 15);
}

TEST(JobFileTest, AnExplicitZeroIsKeptWhereItMeansSomething) {
  const auto file = ParseJobFile("good.yaml", JobWith("  steps: 4", "  steps: 4\n  clip_grad_norm: 0"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->problems, testing::IsEmpty());
  EXPECT_TRUE(file->spec.training().has_clip_grad_norm());
  EXPECT_EQ(ResolveSpec(file->spec).spec.training().clip_grad_norm(), 0);
}

TEST(JobFileTest, JsonIsAJobFileToo) {
  const auto file =
      ParseJobFile("job.json", R"({"name": "j", "model": {"family": "gpt2", "layers": 1, "hidden": 8, "heads": 1,
    "vocab": 9, "context": 8}, "data": {"train": [{"path": "t", "weight": 0.5}]}, "training": {"global_batch": 1,
    "steps": 1, "micro_batch": "auto"}, "resources": {"ranks": 1, "memory_per_rank": "40GiB"}})");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->problems, testing::IsEmpty());
  EXPECT_EQ(file->spec.data().train(0).weight(), 0.5);
  EXPECT_EQ(file->spec.resources().memory_per_rank_bytes(), int64_t{40} << 30);
}

TEST(JobFileTest, WrittenSpecsReadBackEqual) {
  const auto file = ParseJobFile("good.yaml", GoodJob() + "labels: {\"a b\": \"x: \\\"y\\\"\", n: \"12\"}\n");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->problems, testing::IsEmpty());
  const v1::JobSpec resolved = ResolveSpec(file->spec, {0, "job-1"}).spec;
  for (const v1::JobSpec& spec : {file->spec, resolved}) {
    const std::string text = WriteJobFile(spec);
    const auto again = ParseJobFile("again.yaml", text);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
    EXPECT_TRUE(MessageDifferencer::Equals(again->spec, spec)) << text;
  }
}

TEST(JobFileTest, TheQuickstartJobIsGood) {
  const auto file = ReadJobFile("deploy/jobs/quickstart.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->problems, testing::IsEmpty());
  EXPECT_TRUE(ResolveSpec(file->spec).plan.feasible);
}

}  // namespace
}  // namespace muster
