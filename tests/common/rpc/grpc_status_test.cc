#include "common/rpc/grpc_status.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(GrpcStatusTest, DetailsSurviveTheWire) {
  const absl::Status sent =
      ErrorWithInfo(absl::StatusCode::kNotFound, "JOB_NOT_FOUND", "no job job-7", {{"job", "job-7"}});
  const absl::Status received = FromGrpcStatus(ToGrpcStatus(sent));
  EXPECT_EQ(received.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(received.message(), "no job job-7");
  EXPECT_EQ(ErrorInfoOf(received).reason(), "JOB_NOT_FOUND");
  EXPECT_EQ(ErrorInfoOf(received).domain(), "muster");
  EXPECT_EQ(ErrorInfoOf(received).metadata().at("job"), "job-7");
}

TEST(GrpcStatusTest, ABadRequestKeepsEveryFieldAndNamesTheFirst) {
  google::rpc::BadRequest::FieldViolation first;
  first.set_field("spec.model.heads");
  first.set_description("12 does not divide 100");
  google::rpc::BadRequest::FieldViolation second;
  second.set_field("spec.training.steps");
  second.set_description("must be at least 1");
  const absl::Status received = FromGrpcStatus(ToGrpcStatus(BadRequestError({first, second})));
  EXPECT_EQ(received.message(), "spec.model.heads: 12 does not divide 100 (and 1 more)");
  ASSERT_EQ(BadRequestOf(received).field_violations_size(), 2);
  EXPECT_EQ(BadRequestOf(received).field_violations(1).field(), "spec.training.steps");
}

TEST(GrpcStatusTest, AStatusOfAnotherServerHasNoDetails) {
  const absl::Status received = FromGrpcStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "connection refused"));
  EXPECT_EQ(received.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorInfoOf(received).reason(), "");
}

}  // namespace
}  // namespace muster
