#include "server/api/job_service.h"

#include <utility>

#include "server/api/stream_calls.h"
#include "server/api/unary_calls.h"

namespace muster {

using Unary = JobService::Unary;

Unary* JobService::SubmitJob(Context* context, const v1::SubmitJobRequest* request, v1::Job* response) {
  return AnswerOnLoop(loop_, context, response,
                      [this, request](Answer<v1::Job> answer) { parts_.manager->Submit(*request, std::move(answer)); });
}

Unary* JobService::GetJob(Context* context, const v1::GetJobRequest* request, v1::Job* response) {
  return AnswerOnLoop(loop_, context, response,
                      [this, request](Answer<v1::Job> answer) { answer(parts_.manager->Get(request->job())); });
}

Unary* JobService::ListJobs(Context* context, const v1::ListJobsRequest* request, v1::ListJobsResponse* response) {
  return AnswerOnLoop(loop_, context, response,
                      [this, request](Answer<v1::ListJobsResponse> answer) { answer(parts_.manager->List(*request)); });
}

Unary* JobService::CancelJob(Context* context, const v1::CancelJobRequest* request, v1::Job* response) {
  return AnswerOnLoop(loop_, context, response,
                      [this, request](Answer<v1::Job> answer) { parts_.manager->Cancel(*request, std::move(answer)); });
}

Unary* JobService::PauseJob(Context* context, const v1::PauseJobRequest* request, v1::Job* response) {
  return AnswerOnLoop(loop_, context, response,
                      [this, request](Answer<v1::Job> answer) { parts_.manager->Pause(*request, std::move(answer)); });
}

Unary* JobService::ResumeJob(Context* context, const v1::ResumeJobRequest* request, v1::Job* response) {
  return AnswerOnLoop(loop_, context, response,
                      [this, request](Answer<v1::Job> answer) { parts_.manager->Resume(*request, std::move(answer)); });
}

Unary* JobService::PlanJob(Context* context, const v1::PlanJobRequest* request, v1::Plan* response) {
  return AnswerOnLoop(loop_, context, response,
                      [this, request](Answer<v1::Plan> answer) { answer(parts_.manager->Plan(*request)); });
}

Unary* JobService::ListEvents(Context* context, const v1::ListEventsRequest* request,
                              v1::ListEventsResponse* response) {
  return AnswerOnLoop(loop_, context, response, [this, request](Answer<v1::ListEventsResponse> answer) {
    answer(parts_.manager->ListEvents(*request));
  });
}

Unary* JobService::ListCheckpoints(Context* context, const v1::ListCheckpointsRequest* request,
                                   v1::ListCheckpointsResponse* response) {
  return AnswerOnLoop(loop_, context, response, [this, request](Answer<v1::ListCheckpointsResponse> answer) {
    answer(parts_.manager->ListCheckpoints(*request));
  });
}

grpc::ServerWriteReactor<v1::WatchJobResponse>* JobService::WatchJob(Context* context,
                                                                     const v1::WatchJobRequest* request) {
  return new WatchCall(loop_, parts_.manager, parts_.table, *request);
}

grpc::ServerWriteReactor<v1::LogChunk>* JobService::StreamLogs(Context* context, const v1::StreamLogsRequest* request) {
  return new LogCall(loop_, parts_.logs, *request);
}

Unary* JobService::UpdateJob(Context* context, const v1::UpdateJobRequest* request, v1::Job* response) {
  return AnswerOnLoop(loop_, context, response,
                      [this, request](Answer<v1::Job> answer) { parts_.changes->Update(*request, std::move(answer)); });
}

Unary* JobService::QueryMetrics(Context* context, const v1::QueryMetricsRequest* request,
                                v1::QueryMetricsResponse* response) {
  return AnswerOnLoop(loop_, context, response, [this, request](Answer<v1::QueryMetricsResponse> answer) {
    answer(parts_.metrics->Query(*request));
  });
}

Unary* JobService::SaveCheckpoint(Context* context, const v1::SaveCheckpointRequest* request,
                                  v1::Checkpoint* response) {
  return AnswerOnLoop(loop_, context, response, [this, request](Answer<v1::Checkpoint> answer) {
    parts_.changes->SaveCheckpoint(*request, std::move(answer));
  });
}

Unary* JobService::ForkJob(Context* context, const v1::ForkJobRequest* request, v1::Job* response) {
  return AnswerOnLoop(loop_, context, response,
                      [this, request](Answer<v1::Job> answer) { parts_.changes->Fork(*request, std::move(answer)); });
}

Unary* JobService::RebalanceJob(Context* context, const v1::RebalanceJobRequest* request, v1::Job* response) {
  return RefuseUnary(context, "JobService.RebalanceJob");
}

Unary* JobService::DumpStacks(Context* context, const v1::DumpStacksRequest* request,
                              v1::DumpStacksResponse* response) {
  return RefuseUnary(context, "JobService.DumpStacks");
}

grpc::ServerWriteReactor<v1::TuneProgress>* JobService::TuneJob(Context* context, const v1::TuneJobRequest* request) {
  return new RefusedStream<v1::TuneProgress>(NotImplemented("JobService.TuneJob"));
}

grpc::ServerWriteReactor<v1::TraceChunk>* JobService::TraceJob(Context* context, const v1::TraceJobRequest* request) {
  return new TraceCall(loop_, parts_.traces, *request);
}

}  // namespace muster
