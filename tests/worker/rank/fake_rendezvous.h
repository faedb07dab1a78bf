// A coordinator's RendezvousService for tests: every group is complete at once, keys are kept, and it can be told to
// fail.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/grpc_status.h"
#include "muster/v1/rendezvous.grpc.pb.h"

namespace muster {

class FakeRendezvous : public v1::RendezvousService::Service {
 public:
  FakeRendezvous() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeRendezvous() override { server_->Shutdown(); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  // What the next calls answer, one each; after them all is well.
  void FailNext(std::vector<absl::Status> failures) {
    absl::MutexLock lock(&mutex_);
    failures_ = std::move(failures);
  }
  std::vector<v1::JoinGroupRequest> joins() {
    absl::MutexLock lock(&mutex_);
    return joins_;
  }

 private:
  absl::Status NextFailure() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (failures_.empty()) return absl::OkStatus();
    absl::Status failure = failures_.front();
    failures_.erase(failures_.begin());
    return failure;
  }
  static std::string NameOf(const v1::GroupKey& key, const std::string& name) {
    return absl::StrCat(key.job_id(), "/", key.attempt(), "/", key.group(), "/", name);
  }

  grpc::Status JoinGroup(grpc::ServerContext* context, const v1::JoinGroupRequest* request,
                         v1::JoinGroupResponse* response) override {
    absl::MutexLock lock(&mutex_);
    joins_.push_back(*request);
    for (int64_t rank = 0; rank < request->size(); ++rank) response->add_addresses(request->address());
    return ToGrpcStatus(NextFailure());
  }
  grpc::Status SetKey(grpc::ServerContext* context, const v1::SetKeyRequest* request,
                      v1::SetKeyResponse* response) override {
    absl::MutexLock lock(&mutex_);
    keys_[NameOf(request->key(), request->name())] = request->value();
    return ToGrpcStatus(NextFailure());
  }
  grpc::Status AwaitKey(grpc::ServerContext* context, const v1::AwaitKeyRequest* request,
                        v1::AwaitKeyResponse* response) override {
    absl::MutexLock lock(&mutex_);
    const auto found = keys_.find(NameOf(request->key(), request->name()));
    if (found == keys_.end()) return ToGrpcStatus(absl::DeadlineExceededError("the key is not there"));
    response->set_value(found->second);
    return ToGrpcStatus(NextFailure());
  }

  int port_ = 0;
  absl::Mutex mutex_;
  std::vector<absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::JoinGroupRequest> joins_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> keys_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace muster
