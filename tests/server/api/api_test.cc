// The whole of musterd in this process, spoken to over loopback as clients and agents do.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "common/rpc/grpc_status.h"
#include "muster/v1/cluster.grpc.pb.h"
#include "muster/v1/job.grpc.pb.h"
#include "muster/v1/rendezvous.grpc.pb.h"
#include "muster/v1/worker.grpc.pb.h"
#include "server/coordinator.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using testing::HasSubstr;

v1::JobSpec MakeSpec() {
  v1::JobSpec spec;
  spec.set_name("tiny");
  v1::ModelSpec* model = spec.mutable_model();
  model->set_family("gpt2");
  model->set_layers(2);
  model->set_hidden(32);
  model->set_heads(2);
  model->set_vocab(257);
  model->set_context(32);
  spec.mutable_data()->add_train()->set_path("train");
  v1::TrainingSpec* training = spec.mutable_training();
  training->set_global_batch(4);
  training->set_micro_batch(1);
  training->set_steps(4);
  training->set_precision("fp32");
  spec.mutable_resources()->set_ranks(1);
  spec.mutable_resources()->set_device("cpu");
  return spec;
}

// One call's context: no call of these tests may take longer.
struct Call : grpc::ClientContext {
  Call() { set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30)); }
};

// An agent's end of a session.
class AgentSession {
 public:
  explicit AgentSession(v1::WorkerService::Stub* stub, const std::string& agent_id = "agent")
      : stream_(stub->Session(&call_)) {
    v1::WorkerMessage message;
    v1::Hello* hello = message.mutable_hello();
    hello->set_worker("worker-0");
    hello->set_agent_id(agent_id);
    hello->mutable_inventory()->set_address("127.0.0.1");
    v1::Device* device = hello->mutable_inventory()->add_devices();
    device->set_kind("cpu");
    device->set_memory_bytes(int64_t{1} << 30);
    stream_->Write(message);
  }
  ~AgentSession() { call_.TryCancel(); }

  // The next message for which `wanted` holds; others are passed over. Fails when the stream ends before.
  v1::CoordinatorMessage ReadUntil(const std::function<bool(const v1::CoordinatorMessage&)>& wanted) {
    v1::CoordinatorMessage message;
    while (stream_->Read(&message)) {
      if (message.has_desired()) generation_ = message.desired().generation();
      if (wanted(message)) return message;
    }
    ADD_FAILURE() << "the session ended: " << FromGrpcStatus(stream_->Finish());
    return message;
  }

  void Beat(const v1::ObservedRank& rank) {
    v1::WorkerMessage message;
    message.mutable_heartbeat()->set_generation(generation_);
    *message.mutable_heartbeat()->add_ranks() = rank;
    stream_->Write(message);
  }

  void Write(const v1::WorkerMessage& message) { stream_->Write(message); }

  absl::Status WaitForEnd() {
    v1::CoordinatorMessage message;
    while (stream_->Read(&message)) continue;
    return FromGrpcStatus(stream_->Finish());
  }

 private:
  Call call_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
  int64_t generation_ = 0;
};

class ApiTest : public testing::Test {
 protected:
  ApiTest() : clock_(MakeSystemClock()) { Start(); }

  void Start() {
    ServerOptions options;
    options.listen.port = 0;
    options.http.port = 0;
    options.state_dir = directory_.File("state");
    absl::StatusOr<std::unique_ptr<Coordinator>> started = Coordinator::Start(options, "1.2.3", clock_.get());
    ASSERT_TRUE(started.ok()) << started.status();
    coordinator_ = *std::move(started);
    channel_ = grpc::CreateChannel(coordinator_->listen_address().ToString(), grpc::InsecureChannelCredentials());
    jobs_ = v1::JobService::NewStub(channel_);
    cluster_ = v1::ClusterService::NewStub(channel_);
    workers_ = v1::WorkerService::NewStub(channel_);
    rendezvous_ = v1::RendezvousService::NewStub(channel_);
  }

  absl::StatusOr<v1::Job> Submit(const v1::JobSpec& spec, const std::string& request_id = "") {
    Call call;
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec;
    request.set_request_id(request_id);
    v1::Job job;
    absl::Status status = FromGrpcStatus(jobs_->SubmitJob(&call, request, &job));
    if (!status.ok()) return status;
    return job;
  }

  absl::StatusOr<v1::Job> Get(const std::string& id) {
    Call call;
    v1::GetJobRequest request;
    request.set_job(id);
    v1::Job job;
    absl::Status status = FromGrpcStatus(jobs_->GetJob(&call, request, &job));
    if (!status.ok()) return status;
    return job;
  }

  // Watches until the job is in `state`.
  v1::Job WaitFor(const std::string& id, v1::JobState state) {
    Call call;
    v1::WatchJobRequest request;
    request.set_job(id);
    const auto reader = jobs_->WatchJob(&call, request);
    v1::WatchJobResponse change;
    while (reader->Read(&change)) {
      if (change.job().state() != state) continue;
      call.TryCancel();
      return change.job();
    }
    ADD_FAILURE() << id << " did not become " << v1::JobState_Name(state) << ": " << change.job().ShortDebugString();
    return change.job();
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<Clock> clock_;
  std::unique_ptr<Coordinator> coordinator_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::ClusterService::Stub> cluster_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
  std::unique_ptr<v1::RendezvousService::Stub> rendezvous_;
};

v1::ObservedRank MakeRank(const v1::Assignment& assignment, v1::RankPhase phase) {
  v1::ObservedRank rank;
  rank.set_job_id(assignment.job_id());
  rank.set_attempt(assignment.attempt());
  rank.set_rank(assignment.rank());
  rank.set_phase(phase);
  return rank;
}

v1::Assignment ReadAssignment(AgentSession& agent) {
  return agent.ReadUntil([](const auto& message) { return message.desired().assignments_size() > 0; })
      .desired()
      .assignments(0);
}

TEST_F(ApiTest, AJobIsPlacedOnAnAgentRunsAndCompletes) {
  const absl::StatusOr<v1::Job> job = Submit(MakeSpec());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::QUEUED);
  EXPECT_THAT(job->queue_status().reason(), HasSubstr("waits for 1 cpu device"));
  EXPECT_EQ(job->resolved_spec().checkpoint().directory(), job->id());

  AgentSession agent(workers_.get());
  const v1::Assignment assignment = ReadAssignment(agent);
  EXPECT_EQ(assignment.job_id(), job->id());
  EXPECT_EQ(assignment.action(), v1::RUN);
  EXPECT_EQ(assignment.rendezvous_address(), "127.0.0.1");
  agent.Beat(MakeRank(assignment, v1::RANK_TRAINING));
  WaitFor(job->id(), v1::RUNNING);

  v1::ObservedRank ended = MakeRank(assignment, v1::RANK_EXITED);
  ended.mutable_exit()->set_kind(v1::EXIT_COMPLETED);
  agent.Beat(ended);
  WaitFor(job->id(), v1::COMPLETED);
  // It leaves Desired before its end is acknowledged.
  bool dropped = false;
  agent.ReadUntil([&dropped](const v1::CoordinatorMessage& message) {
    dropped = dropped || (message.has_desired() && message.desired().assignments().empty());
    return message.has_exits_acknowledged();
  });
  EXPECT_TRUE(dropped);
}

TEST_F(ApiTest, SubmitIsIdempotentByRequestId) {
  const absl::StatusOr<v1::Job> first = Submit(MakeSpec(), "once");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Submit(MakeSpec(), "once")->id(), first->id());
  EXPECT_NE(Submit(MakeSpec(), "twice")->id(), first->id());
}

TEST_F(ApiTest, AWrongSpecIsRefusedWithItsFieldPaths) {
  v1::JobSpec spec = MakeSpec();
  spec.mutable_model()->set_heads(5);
  const absl::Status refused = Submit(spec).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_GE(BadRequestOf(refused).field_violations_size(), 1);
  EXPECT_EQ(BadRequestOf(refused).field_violations(0).field(), "spec.model.heads");
}

TEST_F(ApiTest, AnUnknownJobIsNotFound) {
  const absl::Status unknown = Get("job-77").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorInfoOf(unknown).reason(), "JOB_NOT_FOUND");
  Call call;
  v1::WatchJobRequest request;
  request.set_job("job-77");
  const auto reader = jobs_->WatchJob(&call, request);
  v1::WatchJobResponse change;
  EXPECT_FALSE(reader->Read(&change));
  EXPECT_EQ(ErrorInfoOf(FromGrpcStatus(reader->Finish())).reason(), "JOB_NOT_FOUND");
}

TEST_F(ApiTest, AWatchEndsWithTheJob) {
  const std::string id = Submit(MakeSpec())->id();
  Call call;
  v1::WatchJobRequest request;
  request.set_job(id);
  const auto reader = jobs_->WatchJob(&call, request);
  v1::WatchJobResponse change;
  ASSERT_TRUE(reader->Read(&change));
  EXPECT_EQ(change.job().state(), v1::QUEUED);
  Call cancel;
  v1::CancelJobRequest cancel_request;
  cancel_request.set_job(id);
  v1::Job cancelled;
  ASSERT_TRUE(jobs_->CancelJob(&cancel, cancel_request, &cancelled).ok());
  EXPECT_EQ(cancelled.state(), v1::CANCELLED);
  while (reader->Read(&change)) continue;
  EXPECT_EQ(change.job().state(), v1::CANCELLED);
  EXPECT_TRUE(reader->Finish().ok());

  Call again;
  const absl::Status refused = FromGrpcStatus(jobs_->CancelJob(&again, cancel_request, &cancelled));
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorInfoOf(refused).metadata().at("state"), "CANCELLED");
}

TEST_F(ApiTest, CallsOfLaterVersionsAreRefusedByName) {
  Call rebalance;
  v1::Job job;
  const absl::Status unary = FromGrpcStatus(jobs_->RebalanceJob(&rebalance, {}, &job));
  EXPECT_EQ(unary.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ErrorInfoOf(unary).metadata().at("call"), "JobService.RebalanceJob");
  Call tune;
  const auto reader = jobs_->TuneJob(&tune, {});
  v1::TuneProgress progress;
  EXPECT_FALSE(reader->Read(&progress));
  const absl::Status stream = FromGrpcStatus(reader->Finish());
  EXPECT_EQ(stream.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ErrorInfoOf(stream).metadata().at("call"), "JobService.TuneJob");
  Call drain;
  v1::Worker worker;
  EXPECT_EQ(ErrorInfoOf(FromGrpcStatus(cluster_->DrainWorker(&drain, {}, &worker))).metadata().at("call"),
            "ClusterService.DrainWorker");
}

TEST_F(ApiTest, ASecondAgentOfANameIsRefused) {
  AgentSession first(workers_.get());
  first.ReadUntil([](const auto& message) { return message.has_welcome(); });
  AgentSession second(workers_.get(), "another");
  const absl::Status refused = second.WaitForEnd();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrorInfoOf(refused).reason(), "WORKER_NAME_TAKEN");
}

TEST_F(ApiTest, RanksMeetInTheRendezvousOfTheirAttemptOnly) {
  const std::string id = Submit(MakeSpec())->id();
  AgentSession agent(workers_.get());
  ReadAssignment(agent);
  v1::JoinGroupRequest request;
  request.mutable_key()->set_job_id(id);
  request.mutable_key()->set_attempt(1);
  request.mutable_key()->set_group("world");
  request.set_size(2);
  request.set_ready(true);
  request.set_address("a");
  Call first_call;
  v1::JoinGroupResponse first;
  grpc::Status first_status;
  std::thread rank([&] { first_status = rendezvous_->JoinGroup(&first_call, request, &first); });
  Call second_call;
  v1::JoinGroupRequest other = request;
  other.set_rank(1);
  other.set_address("b");
  v1::JoinGroupResponse second;
  const grpc::Status second_status = rendezvous_->JoinGroup(&second_call, other, &second);
  rank.join();
  EXPECT_TRUE(first_status.ok()) << first_status.error_message();
  EXPECT_TRUE(second_status.ok()) << second_status.error_message();
  EXPECT_EQ(first.addresses(0) + second.addresses(1), "ab");

  Call stale;
  v1::SetKeyRequest set;
  *set.mutable_key() = request.key();
  set.mutable_key()->set_attempt(0);
  set.set_name("key");
  v1::SetKeyResponse response;
  const absl::Status refused = FromGrpcStatus(rendezvous_->SetKey(&stale, set, &response));
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorInfoOf(refused).reason(), "STALE_ATTEMPT");
}

TEST_F(ApiTest, LogsAreRelayedFromTheAgentThatHasThem) {
  const std::string id = Submit(MakeSpec())->id();
  v1::StreamLogsRequest request;
  request.set_job(id);
  request.set_tail_lines(5);
  Call too_early;
  v1::LogChunk chunk;
  const auto early = jobs_->StreamLogs(&too_early, request);
  EXPECT_FALSE(early->Read(&chunk));
  EXPECT_EQ(ErrorInfoOf(FromGrpcStatus(early->Finish())).reason(), "ATTEMPT_NOT_FOUND");

  AgentSession agent(workers_.get());
  ReadAssignment(agent);
  Call call;
  const auto reader = jobs_->StreamLogs(&call, request);
  const v1::LogRequest asked =
      agent.ReadUntil([](const auto& message) { return message.has_log_request(); }).log_request();
  EXPECT_EQ(asked.job_id(), id);
  EXPECT_EQ(asked.tail_lines(), 5);
  v1::WorkerMessage reply;
  reply.mutable_log_reply()->set_request(asked.request());
  reply.mutable_log_reply()->mutable_chunk()->set_data("step 1\n");
  agent.Write(reply);
  reply.mutable_log_reply()->clear_chunk();
  reply.mutable_log_reply()->set_done(true);
  agent.Write(reply);
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.data(), "step 1\n");
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ApiTest, AStoppedCoordinatorEndsItsStreamsAndStartsAgainWithTheSameJobs) {
  const std::string id = Submit(MakeSpec())->id();
  AgentSession agent(workers_.get());
  const v1::Assignment assignment = ReadAssignment(agent);
  agent.Beat(MakeRank(assignment, v1::RANK_TRAINING));
  WaitFor(id, v1::RUNNING);
  coordinator_.reset();
  EXPECT_EQ(agent.WaitForEnd().code(), absl::StatusCode::kUnavailable);
  Start();
  EXPECT_EQ(Get(id)->state(), v1::RUNNING);
  EXPECT_EQ(Get(id)->attempt(), 1);
  AgentSession back(workers_.get());
  const v1::Assignment again = ReadAssignment(back);
  EXPECT_EQ(again.attempt(), 1);
  EXPECT_EQ(again.action(), v1::RUN);
}

TEST_F(ApiTest, WorkersAndTheClusterAreDescribed) {
  AgentSession agent(workers_.get());
  agent.ReadUntil([](const auto& message) { return message.has_welcome(); });
  Call list;
  v1::ListWorkersResponse workers;
  ASSERT_TRUE(cluster_->ListWorkers(&list, {}, &workers).ok());
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_EQ(workers.workers(0).state(), v1::READY);
  Call get;
  v1::ClusterInfo info;
  ASSERT_TRUE(cluster_->GetClusterInfo(&get, {}, &info).ok());
  EXPECT_EQ(info.version(), "1.2.3");
  EXPECT_EQ(info.devices_free(), 1);
  EXPECT_EQ(info.metrics_address(), coordinator_->http_address().ToString());
  Call wrong;
  v1::ListWorkersRequest request;
  request.set_page_token("made up");
  EXPECT_EQ(ErrorInfoOf(FromGrpcStatus(cluster_->ListWorkers(&wrong, request, &workers))).reason(),
            "INVALID_PAGE_TOKEN");
}

TEST_F(ApiTest, HealthIsServed) {
  grpc::GenericStub stub(channel_);
  Call call;
  grpc::CompletionQueue queue;
  grpc::ByteBuffer request(nullptr, 0);  // an empty HealthCheckRequest: the server as a whole
  const auto rpc = stub.PrepareUnaryCall(&call, "/grpc.health.v1.Health/Check", request, &queue);
  rpc->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  rpc->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice slice;
  ASSERT_TRUE(response.TrySingleSlice(&slice).ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(slice.begin()), slice.size()), "\x08\x01") << "SERVING";
}

TEST_F(ApiTest, ReflectionNamesEveryService) {
  grpc::GenericStub stub(channel_);
  Call call;
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  const auto done = [&] { return queue.Next(&tag, &ok) && ok; };
  const auto stream = stub.PrepareCall(&call, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  stream->StartCall(nullptr);
  ASSERT_TRUE(done());
  grpc::Slice list_services(std::string("\x3a\x01*"));  // field 7, list_services, of a ServerReflectionRequest
  stream->Write(grpc::ByteBuffer(&list_services, 1), nullptr);
  ASSERT_TRUE(done());
  grpc::ByteBuffer response;
  stream->Read(&response, nullptr);
  ASSERT_TRUE(done());
  grpc::Slice slice;
  ASSERT_TRUE(response.TrySingleSlice(&slice).ok());
  const std::string text(reinterpret_cast<const char*>(slice.begin()), slice.size());
  for (const char* service : {"muster.v1.JobService", "muster.v1.ClusterService", "muster.v1.WorkerService",
                              "muster.v1.RendezvousService", "grpc.health.v1.Health"}) {
    EXPECT_THAT(text, HasSubstr(service));
  }
  call.TryCancel();
  grpc::Status status;
  stream->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
}

TEST(CoordinatorTest, APortInUseIsNamedAndNothingIsHalfStarted) {
  const std::unique_ptr<Clock> clock = MakeSystemClock();
  const TemporaryDirectory directory;
  ServerOptions options;
  options.listen.port = 0;
  options.http.port = 0;
  options.state_dir = directory.File("first");
  const auto first = Coordinator::Start(options, "1", clock.get());
  ASSERT_TRUE(first.ok()) << first.status();
  ServerOptions second = options;
  second.state_dir = directory.File("second");
  second.listen = (*first)->listen_address();
  const auto refused = Coordinator::Start(second, "1", clock.get());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--listen"));
  second.listen = options.listen;
  second.state_dir = options.state_dir;
  EXPECT_THAT(std::string(Coordinator::Start(second, "1", clock.get()).status().message()),
              HasSubstr("in use by another musterd"));
}

}  // namespace
}  // namespace muster
