#include "common/spec/initial_model.h"

#include "common/base/file.h"
#include "common/formats/hugging_face_config.h"
#include "common/spec/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

ModelShape StoredShape() {
  ModelShape shape;
  shape.family = ModelFamily::kGpt2;
  shape.layers = 2;
  shape.hidden = 32;
  shape.heads = shape.kv_heads = 4;
  shape.ffn = 96;
  shape.vocab = 61;
  shape.context = 16;
  shape.norm_eps = 1e-6;
  return shape;
}

class InitialModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeDirectories(root_.File("models/tiny")).ok());
    root_.Put("models/tiny/config.json", SerializeHuggingFaceConfig(StoredShape(), {}));
  }
  JobFile Read(const std::string& model) {
    const std::string text = "name: tuned\nmodel: " + model +
                             "\n"
                             "data: {train: [{path: train}]}\n"
                             "training: {global_batch: 4, steps: 2, precision: fp32}\n"
                             "resources: {ranks: 1}\n";
    return ParseJobFile("job.yaml", text, root_.path()).value();
  }

  TemporaryDirectory root_;
};

TEST_F(InitialModelTest, GivesTheShapeThatTheJobLeavesOut) {
  const JobFile file = Read("{init_from: models/tiny}");
  EXPECT_TRUE(file.problems.empty()) << file.Describe(file.problems);
  EXPECT_EQ(file.spec.model().family(), "gpt2");
  EXPECT_EQ(file.spec.model().hidden(), 32);
  EXPECT_EQ(file.spec.model().ffn(), 96);
  EXPECT_EQ(file.spec.model().norm_eps(), 1e-6);
  EXPECT_TRUE(file.spec.model().tied());
}

TEST_F(InitialModelTest, AFieldThatContradictsTheModelIsNamedWithItsLine) {
  const JobFile file = Read("{init_from: models/tiny, hidden: 64, layers: 2}");
  EXPECT_THAT(file.Describe(file.problems), HasSubstr("job.yaml:2: model.hidden: 64 contradicts "));
  EXPECT_EQ(file.problems.size(), 1u) << file.Describe(file.problems);
}

TEST_F(InitialModelTest, WithoutTheDirectoryTheJobMustSayTheShape) {
  const JobFile file = Read("{init_from: elsewhere}");
  EXPECT_EQ(file.problems.size(), 1u) << file.Describe(file.problems);
  EXPECT_THAT(file.Describe(file.problems),
              HasSubstr("model.init_from: the model's shape is not given, and there is no "));
  EXPECT_THAT(file.Describe(file.problems), HasSubstr("--data-root"));
  const JobFile complete =
      Read("{init_from: elsewhere, family: gpt2, layers: 2, hidden: 32, heads: 4, vocab: 61, context: 16}");
  EXPECT_TRUE(complete.problems.empty()) << complete.Describe(complete.problems);
}

TEST_F(InitialModelTest, AModelThatIsNotOursIsRefusedByItsField) {
  root_.Put("models/tiny/config.json", R"({"model_type": "bloom"})");
  const JobFile file = Read("{init_from: models/tiny}");
  EXPECT_THAT(file.Describe(file.problems), HasSubstr("model_type: \"bloom\""));
}

}  // namespace
}  // namespace muster
