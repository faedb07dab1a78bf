#include "server/job/spec_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rpc/grpc_status.h"
#include "common/spec/job_file.h"

namespace muster {
namespace {

using testing::HasSubstr;

std::vector<SchedulableWorker> WorkerWith(int64_t devices, int64_t memory_bytes) {
  SchedulableWorker worker;
  worker.name = "worker-0";
  for (int64_t index = 0; index < devices; ++index) {
    worker.devices.push_back({.index = index, .kind = "cpu", .memory_bytes = memory_bytes, .free = true});
  }
  return {worker};
}

// Says neither micro-batch nor memory.
v1::JobSpec OpenSpec() {
  const auto file = ParseJobFile("open.yaml",
                                 "name: open\n"
                                 "model: {family: gpt2, layers: 2, hidden: 64, heads: 2, vocab: 257, context: 64}\n"
                                 "data: {train: [{path: t}]}\n"
                                 "training: {global_batch: 16, steps: 4}\n"
                                 "resources: {ranks: 2}\n");
  return file->spec;
}

TEST(SpecAdmissionTest, AJobThatNamesNoMemoryIsFittedIntoTheRegisteredDevices) {
  const auto admitted = SpecAdmission().Admit(OpenSpec(), "job-1", WorkerWith(2, int64_t{512} << 20));
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(admitted->resolved_spec.training().micro_batch(), 8);
  EXPECT_EQ(admitted->resolved_spec.checkpoint().directory(), "job-1");
  EXPECT_TRUE(admitted->plan.feasible());
  EXPECT_EQ(admitted->plan.ranks(0).limit_bytes(), int64_t{512} << 20);
}

TEST(SpecAdmissionTest, ANameThatReadsLikeAnIdIsRefused) {
  v1::JobSpec spec = OpenSpec();
  spec.set_name("job-1");
  const auto refused = SpecAdmission().Admit(spec, "job-7", WorkerWith(2, int64_t{512} << 20));
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  const google::rpc::BadRequest details = BadRequestOf(refused.status());
  ASSERT_EQ(details.field_violations_size(), 1);
  EXPECT_EQ(details.field_violations(0).field(), "spec.name");
  EXPECT_EQ(details.field_violations(0).description(),
            "\"job-1\" reads like the id of a job; choose a name that is not \"job-\" and a number");
  for (const char* name : {"job-one", "job-", "my-job-1", "job-1b"}) {
    spec.set_name(name);
    EXPECT_TRUE(SpecAdmission().Admit(spec, "job-7", WorkerWith(2, int64_t{512} << 20)).ok()) << name;
  }
}

TEST(SpecAdmissionTest, AJobThatNoDeviceCouldHoldIsRefusedWithTheReason) {
  v1::JobSpec spec = OpenSpec();
  spec.mutable_training()->set_micro_batch(8);
  const auto refused = SpecAdmission().Admit(spec, "job-1", WorkerWith(2, int64_t{8} << 20));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(BadRequestOf(refused.status()).DebugString(), HasSubstr("8.0 MiB"));
}

}  // namespace
}  // namespace muster
