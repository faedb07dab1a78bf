#include "server/api/cluster_service.h"

#include <utility>

#include "common/base/status_macros.h"
#include "server/api/unary_calls.h"
#include "server/job/page_token.h"

namespace muster {

using Unary = ClusterService::Unary;

absl::StatusOr<v1::ListWorkersResponse> ClusterService::List(const v1::ListWorkersRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t size, PageSize(request.page_size()));
  MUSTER_ASSIGN_OR_RETURN(const int64_t skip, ReadPageToken("ListWorkers", request.page_token()));
  v1::ListWorkersResponse response;
  int64_t index = 0;  // workers are never forgotten, so a place in the order of names is stable enough to page by
  for (const auto& worker : registry_->workers()) {
    if (index++ < skip) continue;
    if (response.workers_size() == size) {
      response.set_next_page_token(MakePageToken("ListWorkers", skip + size));
      break;
    }
    *response.add_workers() = registry_->View(worker.first);
  }
  return response;
}

Unary* ClusterService::ListWorkers(Context* context, const v1::ListWorkersRequest* request,
                                   v1::ListWorkersResponse* response) {
  return AnswerOnLoop(loop_, context, response,
                      [this, request](Answer<v1::ListWorkersResponse> answer) { answer(List(*request)); });
}

Unary* ClusterService::CordonWorker(Context* context, const v1::CordonWorkerRequest* request, v1::Worker* response) {
  return AnswerOnLoop(loop_, context, response, [this, request](Answer<v1::Worker> answer) {
    registry_->SetCordon(request->worker(), true, request->reason(), std::move(answer));
  });
}

Unary* ClusterService::UncordonWorker(Context* context, const v1::UncordonWorkerRequest* request,
                                      v1::Worker* response) {
  return AnswerOnLoop(loop_, context, response, [this, request](Answer<v1::Worker> answer) {
    registry_->SetCordon(request->worker(), false, "", std::move(answer));
  });
}

Unary* ClusterService::GetClusterInfo(Context* context, const v1::GetClusterInfoRequest* request,
                                      v1::ClusterInfo* response) {
  return AnswerOnLoop(loop_, context, response, [this](Answer<v1::ClusterInfo> answer) { answer(info_()); });
}

Unary* ClusterService::DrainWorker(Context* context, const v1::DrainWorkerRequest* request, v1::Worker* response) {
  return RefuseUnary(context, "ClusterService.DrainWorker");
}

Unary* ClusterService::ListQueues(Context* context, const v1::ListQueuesRequest* request,
                                  v1::ListQueuesResponse* response) {
  return RefuseUnary(context, "ClusterService.ListQueues");
}

Unary* ClusterService::CreateToken(Context* context, const v1::CreateTokenRequest* request, v1::Token* response) {
  return RefuseUnary(context, "ClusterService.CreateToken");
}

Unary* ClusterService::ListTokens(Context* context, const v1::ListTokensRequest* request,
                                  v1::ListTokensResponse* response) {
  return RefuseUnary(context, "ClusterService.ListTokens");
}

Unary* ClusterService::RevokeToken(Context* context, const v1::RevokeTokenRequest* request, v1::Token* response) {
  return RefuseUnary(context, "ClusterService.RevokeToken");
}

}  // namespace muster
