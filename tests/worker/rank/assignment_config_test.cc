#include "worker/rank/assignment_config.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/support/temporary_directory.h"
#include "tests/worker/rank/tiny_job.h"

namespace muster {
namespace {

using testing::HasSubstr;

class AssignmentConfigTest : public testing::Test {
 protected:
  AssignmentConfigTest() {
    assignment_.set_job_id("job-1");
    assignment_.set_attempt(3);
    assignment_.set_rank(2);
    *assignment_.mutable_resolved_spec() = ResolvedTinyJob(TinyJob(directory_, 2, 2));
  }

  v1::TrainingSpec& training() { return *assignment_.mutable_resolved_spec()->mutable_training(); }
  EngineConfig Config(int64_t validation_windows = 12) {
    absl::StatusOr<EngineConfig> config = MakeEngineConfig(assignment_, roots_, validation_windows);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? *config : EngineConfig{};
  }

  TemporaryDirectory directory_;
  const RankRoots roots_{"/data", "/checkpoints"};
  v1::Assignment assignment_;
};

TEST_F(AssignmentConfigTest, CarriesModelLayoutAndTraining) {
  const EngineConfig config = Config();
  EXPECT_TRUE(CheckEngineConfig(config).ok()) << CheckEngineConfig(config);
  EXPECT_EQ(config.rank, 2);
  EXPECT_EQ(config.model.layers, 2);
  EXPECT_EQ(config.model.vocab, 32);
  EXPECT_EQ(config.layout.data, 2);
  EXPECT_EQ(config.layout.pipeline, 2);
  EXPECT_EQ(config.layout.accumulation_steps, 2);
  EXPECT_EQ(config.layout.precision, Precision::kFp32);
  EXPECT_EQ(config.training.steps, 8);
  EXPECT_DOUBLE_EQ(config.training.adamw.learning_rate, 1e-2);
  EXPECT_DOUBLE_EQ(config.training.adamw.beta2, 0.95);  // a default, filled when the job was resolved
  EXPECT_DOUBLE_EQ(config.training.clip_grad_norm, 1.0);
  EXPECT_EQ(config.training.seed, 1234u);
  EXPECT_EQ(config.checkpoint.directory, "/checkpoints/ckpt/job-1");  // the same file may be submitted again
  EXPECT_EQ(config.checkpoint.every_steps, 4);
  EXPECT_EQ(config.checkpoint.attempt, 3);
  EXPECT_THAT(config.checkpoint.spec_json, HasSubstr("\"global_batch\""));
}

TEST_F(AssignmentConfigTest, TakesTheCutsOfTheAssignment) {
  for (const int64_t cut : {0, 5, 6}) assignment_.add_cuts(cut);
  const EngineConfig config = Config();
  ASSERT_EQ(config.stages.size(), 2u);
  EXPECT_EQ(config.stages[0].last, 5);
  EXPECT_EQ(config.stages[1].first, 5);
}

TEST_F(AssignmentConfigTest, CarriesTheChunksOfAnInterleavedPipeline) {
  *assignment_.mutable_resolved_spec() =
      ResolvedTinyJob(absl::StrReplaceAll(TinyJob(directory_, 2, 2), {{"pipeline: 2", "pipeline: 2, interleave: 2"}}));
  EXPECT_TRUE(CheckEngineConfig(Config()).ok()) << CheckEngineConfig(Config());
  EXPECT_EQ(Config().layout.interleave, 2);
  for (const int64_t cut : {0, 1, 3, 5, 6}) assignment_.add_cuts(cut);
  const EngineConfig config = Config();
  EXPECT_TRUE(CheckEngineConfig(config).ok()) << CheckEngineConfig(config);
  ASSERT_EQ(config.stages.size(), 4u);
  EXPECT_EQ(config.stages[2].first, 3);
}

TEST_F(AssignmentConfigTest, RefusesCutsThatDoNotFitTheModel) {
  for (const int64_t cut : {0, 3, 7}) assignment_.add_cuts(cut);
  EXPECT_THAT(std::string(MakeEngineConfig(assignment_, roots_, 12).status().message()), HasSubstr("cuts"));
}

TEST_F(AssignmentConfigTest, ValidatesBeforeTheFirstStepAndAfterTheLastUnlessTold) {
  EngineConfig config = Config();
  EXPECT_TRUE(config.validation.before_first_step);
  EXPECT_EQ(config.validation.every_steps, 8);
  EXPECT_EQ(config.validation.windows, 12);
  training().set_validate_every_steps(3);
  training().set_validation_windows(5);
  config = Config();
  EXPECT_EQ(config.validation.every_steps, 3);
  EXPECT_EQ(config.validation.windows, 5);
  EXPECT_EQ(Config(/*validation_windows=*/0).validation.every_steps, 0);  // nothing to validate with
}

TEST_F(AssignmentConfigTest, ResumesFromBelowTheCheckpointRoot) {
  assignment_.set_resume_from("ckpt/attempt-2/step-4");
  const EngineConfig config = Config();
  EXPECT_EQ(config.checkpoint.resume_from, "/checkpoints/ckpt/attempt-2/step-4");
  EXPECT_FALSE(config.validation.before_first_step);  // the first attempt has done it
}

TEST_F(AssignmentConfigTest, RefusesPathsThatLeaveTheirRoot) {
  EXPECT_EQ(*BelowRoot("/root", "a/b", "field"), "/root/a/b");
  for (const std::string path : {"", "/etc", "..", "a/../../b"}) {
    const absl::Status status = BelowRoot("/root", path, "data.train[0].path").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr("data.train[0].path"));
  }
}

TEST_F(AssignmentConfigTest, ReadsBinaryAndJson) {
  std::string json;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(assignment_, &json).ok());
  for (const std::string& path :
       {directory_.Put("assignment.binpb", assignment_.SerializeAsString()), directory_.Put("assignment.json", json)}) {
    const absl::StatusOr<v1::Assignment> read = ReadAssignment(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->SerializeAsString(), assignment_.SerializeAsString());
  }
  const absl::Status bad = ReadAssignment(directory_.Put("bad.json", "{]")).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(bad.message()), HasSubstr("bad.json"));
}

}  // namespace
}  // namespace muster
