#include "server/cluster/worker_registry.h"

#include <gtest/gtest.h>

#include "common/rpc/grpc_status.h"
#include "tests/support/coordinator_harness.h"

namespace muster {
namespace {

TEST(WorkerRegistryTest, AHelloIsAnsweredWithWelcomeThenDesired) {
  CoordinatorHarness harness;
  const FakeAgent& agent = harness.AddAgent("worker-0", 1);
  ASSERT_GE(agent.received.size(), 2u);
  EXPECT_EQ(agent.received[0].welcome().cluster_id(), "cluster");
  EXPECT_EQ(agent.received[0].welcome().lease().seconds(), 10);
  EXPECT_TRUE(agent.received[1].has_desired());
}

TEST(WorkerRegistryTest, ASecondAgentOfANameIsRefusedWhileTheFirstHoldsItsLease) {
  CoordinatorHarness harness;
  harness.AddAgent("worker-0", 1);
  FakeAgent second("worker-0", "second", 1);
  const absl::Status refused = harness.Connect(second);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrorInfoOf(refused).reason(), "WORKER_NAME_TAKEN");
}

TEST(WorkerRegistryTest, ASecondAgentReplacesOneThatIsSilent) {
  CoordinatorHarness harness;
  FakeAgent& first = harness.AddAgent("worker-0", 1);
  first.connected = false;  // hangs: the stream stays open
  harness.Pass(absl::Seconds(11));
  FakeAgent second("worker-0", "second", 1);
  EXPECT_TRUE(harness.Connect(second).ok());
  EXPECT_EQ(first.closed.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(harness.registry->NameOf(&second), "worker-0");
  EXPECT_EQ(harness.registry->NameOf(&first), "");
}

TEST(WorkerRegistryTest, TheSameAgentReconnectsBeforeItsOldStreamIsSeenToBreak) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  FakeAgent reconnected("worker-0", agent.agent_id, 1);
  EXPECT_TRUE(harness.Connect(reconnected).ok());
  EXPECT_FALSE(agent.closed.ok());
  // The old stream's end, when it comes, does not touch the new one.
  harness.registry->Disconnect(&agent);
  EXPECT_EQ(harness.registry->NameOf(&reconnected), "worker-0");
}

TEST(WorkerRegistryTest, AWorkerIsUnreachableWhenItsLeaseExpiresAndReadyWhenItIsHeardAgain) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  EXPECT_EQ(harness.registry->View("worker-0").state(), v1::READY);
  harness.Disconnect(agent);
  harness.Pass(absl::Seconds(10));
  EXPECT_TRUE(harness.registry->IsReachable("worker-0"));
  harness.Pass(absl::Seconds(1));
  EXPECT_EQ(harness.registry->View("worker-0").state(), v1::UNREACHABLE);
  ASSERT_TRUE(harness.Connect(agent).ok());
  EXPECT_EQ(harness.registry->View("worker-0").state(), v1::READY);
}

TEST(WorkerRegistryTest, AKnownWorkerHasOneLeaseToComeBackAfterARestart) {
  CoordinatorHarness harness;
  harness.AddAgent("worker-0", 1);
  harness.clock.Advance(absl::Hours(5));
  harness.Restart();
  EXPECT_TRUE(harness.registry->IsReachable("worker-0"));
  EXPECT_EQ(harness.registry->View("worker-0").state(), v1::UNREACHABLE) << "not heard since the start";
  EXPECT_EQ(harness.registry->View("worker-0").inventory().devices_size(), 1);
  harness.Pass(absl::Seconds(11));
  EXPECT_FALSE(harness.registry->IsReachable("worker-0"));
}

TEST(WorkerRegistryTest, AHeartbeatIsAnsweredAndUpdatesDevices) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 2);
  v1::Heartbeat heartbeat = agent.MakeHeartbeat();
  heartbeat.set_sequence(77);
  v1::Device* sick = heartbeat.add_devices();
  *sick = agent.inventory.devices(1);
  sick->set_unhealthy_reason("ECC errors");
  harness.registry->Heartbeat(&agent, heartbeat);
  EXPECT_EQ(agent.received.back().heartbeat_acknowledged().sequence(), 77);
  const v1::Worker worker = harness.registry->View("worker-0");
  EXPECT_EQ(worker.inventory().devices(0).unhealthy_reason(), "");
  EXPECT_EQ(worker.inventory().devices(1).unhealthy_reason(), "ECC errors");
}

TEST(WorkerRegistryTest, DesiredIsSentOnlyWhenItChangesAndItsGenerationGrows) {
  CoordinatorHarness harness;
  FakeAgent& agent = harness.AddAgent("worker-0", 1);
  agent.obeys = false;
  v1::Assignment assignment;
  assignment.set_job_id("job-1");
  assignment.set_attempt(1);
  assignment.set_action(v1::RUN);
  const int64_t before = agent.desired.generation();
  harness.registry->SetDesired("job-1", {{"worker-0", {assignment}}});
  EXPECT_EQ(agent.desired.generation(), before + 1);
  harness.registry->SetDesired("job-1", {{"worker-0", {assignment}}});
  EXPECT_EQ(agent.desired.generation(), before + 1);
  harness.registry->SetDesired("job-2", {});
  EXPECT_EQ(agent.desired.assignments_size(), 1) << "another job's share is left alone";
  harness.registry->SetDesired("job-1", {});
  EXPECT_EQ(agent.desired.assignments_size(), 0);
}

TEST(WorkerRegistryTest, AWorkersNameIsChecked) {
  CoordinatorHarness harness;
  for (const char* name : {"", "a/b", "with space"}) {
    FakeAgent agent(name, "agent", 1);
    EXPECT_EQ(harness.Connect(agent).code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

}  // namespace
}  // namespace muster
