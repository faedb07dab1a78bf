// JobService on the wire. Every call runs on the coordinator's loop.
#pragma once

#include <grpcpp/grpcpp.h>

#include "common/rpc/event_loop.h"
#include "muster/v1/job.grpc.pb.h"
#include "server/job/job_changes.h"
#include "server/job/job_manager.h"
#include "server/job/log_relay.h"
#include "server/job/metric_store.h"
#include "server/job/trace_relay.h"

namespace muster {

// Who answers the calls. All outlive the service.
struct JobServiceParts {
  JobManager* manager = nullptr;
  JobChanges* changes = nullptr;
  JobTable* table = nullptr;
  LogRelay* logs = nullptr;
  MetricStore* metrics = nullptr;
  TraceRelay* traces = nullptr;
};

// Owned by the coordinator. Thread-safe, as gRPC calls it.
class JobService : public v1::JobService::CallbackService {
 public:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  JobService(EventLoop* loop, const JobServiceParts& parts) : loop_(loop), parts_(parts) {}

  Unary* SubmitJob(Context* context, const v1::SubmitJobRequest* request, v1::Job* response) override;
  Unary* GetJob(Context* context, const v1::GetJobRequest* request, v1::Job* response) override;
  Unary* ListJobs(Context* context, const v1::ListJobsRequest* request, v1::ListJobsResponse* response) override;
  Unary* CancelJob(Context* context, const v1::CancelJobRequest* request, v1::Job* response) override;
  Unary* PauseJob(Context* context, const v1::PauseJobRequest* request, v1::Job* response) override;
  Unary* ResumeJob(Context* context, const v1::ResumeJobRequest* request, v1::Job* response) override;
  Unary* PlanJob(Context* context, const v1::PlanJobRequest* request, v1::Plan* response) override;
  Unary* ListEvents(Context* context, const v1::ListEventsRequest* request, v1::ListEventsResponse* response) override;
  Unary* ListCheckpoints(Context* context, const v1::ListCheckpointsRequest* request,
                         v1::ListCheckpointsResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchJobResponse>* WatchJob(Context* context,
                                                           const v1::WatchJobRequest* request) override;
  grpc::ServerWriteReactor<v1::LogChunk>* StreamLogs(Context* context, const v1::StreamLogsRequest* request) override;
  Unary* UpdateJob(Context* context, const v1::UpdateJobRequest* request, v1::Job* response) override;
  Unary* QueryMetrics(Context* context, const v1::QueryMetricsRequest* request,
                      v1::QueryMetricsResponse* response) override;
  Unary* SaveCheckpoint(Context* context, const v1::SaveCheckpointRequest* request, v1::Checkpoint* response) override;
  Unary* ForkJob(Context* context, const v1::ForkJobRequest* request, v1::Job* response) override;
  grpc::ServerWriteReactor<v1::TraceChunk>* TraceJob(Context* context, const v1::TraceJobRequest* request) override;

  // Of a later version: UNIMPLEMENTED, naming the call.
  Unary* RebalanceJob(Context* context, const v1::RebalanceJobRequest* request, v1::Job* response) override;
  Unary* DumpStacks(Context* context, const v1::DumpStacksRequest* request, v1::DumpStacksResponse* response) override;
  grpc::ServerWriteReactor<v1::TuneProgress>* TuneJob(Context* context, const v1::TuneJobRequest* request) override;

 private:
  EventLoop* const loop_;
  const JobServiceParts parts_;
};

}  // namespace muster
