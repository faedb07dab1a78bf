#include "common/spec/field_rules.h"

#include <cmath>
#include <set>

#include "common/spec/resolve.h"
#include "common/spec/scalars.h"
#include "gmock/gmock.h"
#include "google/protobuf/duration.pb.h"
#include "gtest/gtest.h"
#include "muster/v1/job.pb.h"

namespace muster {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

void CollectPaths(const Descriptor& message, const std::string& path, std::set<std::string>* paths) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string name = path.empty() ? FileKey(field) : path + "." + FileKey(field);
    paths->insert(name);
    const bool part = field.message_type() != nullptr && !field.is_map() &&
                      field.message_type() != google::protobuf::Duration::descriptor();
    if (part) CollectPaths(*field.message_type(), name, paths);
  }
}

TEST(FieldRulesTest, EveryFieldOfTheSchemaHasOneRuleAndNoOtherHas) {
  std::set<std::string> fields;
  CollectPaths(*v1::JobSpec::descriptor(), "", &fields);
  std::set<std::string> rules;
  for (const FieldRule& rule : FieldRules()) {
    EXPECT_TRUE(rules.insert(rule.path).second) << rule.path;
    EXPECT_STRNE(rule.meaning, "") << rule.path;
    EXPECT_STRNE(rule.default_text, "") << rule.path;
  }
  EXPECT_EQ(rules, fields);
}

TEST(FieldRulesTest, RulesAreFoundWithIndicesInThePath) {
  ASSERT_NE(FindFieldRule("data.train[3].weight"), nullptr);
  EXPECT_STREQ(FindFieldRule("data.train[3].weight")->path, "data.train.weight");
  EXPECT_EQ(FindFieldRule("data.trains"), nullptr);
}

TEST(FieldRulesTest, RangesNameTheirEnds) {
  const FieldRule& layers = *FindFieldRule("model.layers");
  EXPECT_EQ(CheckNumber(layers, 1), "");
  EXPECT_THAT(CheckNumber(layers, 0), testing::HasSubstr("from 1 to 1000"));
  const FieldRule& beta = *FindFieldRule("training.optimizer.adamw.beta1");
  EXPECT_EQ(CheckNumber(beta, 0.9), "");
  EXPECT_THAT(CheckNumber(beta, 1), testing::HasSubstr("above 0 and below 1"));
  EXPECT_NE(CheckNumber(beta, std::nan("")), "");
}

TEST(FieldRulesTest, WrittenDefaultsAreTheFilledOnes) {
  v1::JobSpec spec;
  spec.mutable_model()->set_family("gpt2");
  spec.mutable_data()->add_train();
  spec.mutable_data()->add_validation();
  FillDefaults(&spec);
  int compared = 0;
  const auto expect = [&compared](const char* path, double value) {
    const auto written = ParseNumber(FindFieldRule(path)->default_text);
    ASSERT_TRUE(written.ok()) << path;
    EXPECT_EQ(*written, value) << path;
    ++compared;
  };
  expect("model.norm_eps", spec.model().norm_eps());
  expect("model.rope_base", spec.model().rope_base());
  expect("data.train.weight", spec.data().train(0).weight());
  expect("data.validation.weight", spec.data().validation(0).weight());
  expect("data.seed", static_cast<double>(spec.data().seed()));
  expect("data.prefetch_steps", static_cast<double>(spec.data().prefetch_steps()));
  expect("data.loader_threads", static_cast<double>(spec.data().loader_threads()));
  expect("training.loss_chunk_tokens", static_cast<double>(spec.training().loss_chunk_tokens()));
  expect("training.clip_grad_norm", spec.training().clip_grad_norm());
  expect("training.optimizer.adamw.lr", spec.training().optimizer().adamw().lr());
  expect("training.optimizer.adamw.beta1", spec.training().optimizer().adamw().beta1());
  expect("training.optimizer.adamw.beta2", spec.training().optimizer().adamw().beta2());
  expect("training.optimizer.adamw.eps", spec.training().optimizer().adamw().eps());
  expect("training.optimizer.adamw.weight_decay", spec.training().optimizer().adamw().weight_decay());
  expect("training.schedule.min_lr_ratio", spec.training().schedule().min_lr_ratio());
  expect("training.threads_per_rank", static_cast<double>(spec.training().threads_per_rank()));
  expect("parallelism.tensor", static_cast<double>(spec.parallelism().tensor()));
  expect("parallelism.pipeline", static_cast<double>(spec.parallelism().pipeline()));
  expect("parallelism.interleave", static_cast<double>(spec.parallelism().interleave()));
  expect("parallelism.context", static_cast<double>(spec.parallelism().context()));
  expect("parallelism.expert", static_cast<double>(spec.parallelism().expert()));
  expect("checkpoint.keep", static_cast<double>(spec.checkpoint().keep()));
  expect("policy.max_restarts", static_cast<double>(spec.policy().max_restarts()));
  expect("policy.spike_threshold", spec.policy().spike_threshold());
  expect("policy.rewind_steps", static_cast<double>(spec.policy().rewind_steps()));
  expect("policy.max_rewinds", static_cast<double>(spec.policy().max_rewinds()));
  EXPECT_EQ(compared, 26);
  EXPECT_EQ(spec.training().precision(), FindFieldRule("training.precision")->default_text);
  EXPECT_EQ(spec.training().schedule().decay(), FindFieldRule("training.schedule.decay")->default_text);
  EXPECT_EQ(spec.parallelism().schedule(), FindFieldRule("parallelism.schedule")->default_text);
  EXPECT_EQ(spec.resources().device(), FindFieldRule("resources.device")->default_text);
  EXPECT_EQ(spec.policy().loss_spike(), FindFieldRule("policy.loss_spike")->default_text);
  EXPECT_EQ(spec.policy().non_finite(), FindFieldRule("policy.non_finite")->default_text);
}

TEST(FieldRulesTest, TheNearestWordIsWithinAFewEdits) {
  EXPECT_EQ(NearestWord("layrs", {"heads", "layers"}), "layers");
  EXPECT_EQ(NearestWord("globalbatch", {"global_batch", "micro_batch"}), "global_batch");
  EXPECT_EQ(NearestWord("xyz", {"heads", "layers"}), "");
}

}  // namespace
}  // namespace muster
