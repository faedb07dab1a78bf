#include "common/spec/set_field.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::HasSubstr;

TEST(SetField, ReadsAValueAsAJobFileDoesAndNamesTheFieldInTheSchema) {
  v1::JobSpec spec;
  spec.mutable_training()->set_steps(7);
  const absl::StatusOr<std::string> rate = SetField("training.optimizer.adamw.lr=1e-4", &spec);
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_EQ(*rate, "training.optimizer.adamw.lr");
  EXPECT_EQ(spec.training().optimizer().adamw().lr(), 1e-4);
  EXPECT_EQ(spec.training().steps(), 7) << "its neighbours stay";
  const absl::StatusOr<std::string> memory = SetField("resources.memory_per_rank=2GiB", &spec);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(*memory, "resources.memory_per_rank_bytes");
  EXPECT_EQ(spec.resources().memory_per_rank_bytes(), int64_t{2} << 30);
}

TEST(SetField, AListIsReplaced) {
  v1::JobSpec spec;
  spec.mutable_data()->add_train()->set_path("old");
  ASSERT_TRUE(SetField("data.train=[{path: new, weight: 2}]", &spec).ok());
  ASSERT_EQ(spec.data().train_size(), 1);
  EXPECT_EQ(spec.data().train(0).path(), "new");
}

TEST(SetField, WhatIsWrongIsSaidWithTheFieldAndNothingChanges) {
  v1::JobSpec spec;
  EXPECT_THAT(SetField("training.stpes=5", &spec).status().message(), HasSubstr("did you mean training.steps?"));
  EXPECT_THAT(SetField("training.steps=many", &spec).status().message(), HasSubstr("training.steps"));
  EXPECT_THAT(SetField("training.steps", &spec).status().message(), HasSubstr("FIELD=VALUE"));
  EXPECT_THAT(SetField("data.train.path=x", &spec).status().message(), HasSubstr("no field"));
  EXPECT_EQ(spec.ByteSizeLong(), 0u);
}

}  // namespace
}  // namespace muster
