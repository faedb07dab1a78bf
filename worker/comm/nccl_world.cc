#include "worker/comm/nccl_world.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Between two looks at NCCL's state. A small exchange over NVLink takes about as long.
constexpr absl::Duration kPollInterval = absl::Microseconds(20);

absl::Status FromNccl(ncclResult_t result, ncclComm_t comm, absl::string_view what) {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": NCCL: ", ncclGetErrorString(result), ": ", ncclGetLastError(comm));
  const bool from_outside = result == ncclSystemError || result == ncclRemoteError;
  return from_outside ? absl::UnavailableError(message) : absl::InternalError(message);
}

absl::StatusOr<ncclUniqueId> AgreeOnUniqueId(RendezvousStore& store, const std::string& name, bool first,
                                             absl::Duration timeout) {
  const std::string key = absl::StrCat("nccl/", name);
  ncclUniqueId id{};
  if (first) {
    // Opens the listener at which the others will call, in this process.
    MUSTER_RETURN_IF_ERROR(FromNccl(ncclGetUniqueId(&id), nullptr, absl::StrCat("group ", name, ": unique id")));
    MUSTER_RETURN_IF_ERROR(store.Set(key, absl::string_view(id.internal, sizeof(id.internal))));
    return id;
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string value, store.Get(key, timeout));
  if (value.size() != sizeof(id.internal)) {
    return absl::InvalidArgumentError(absl::StrCat("group ", name, ": a unique id of ", value.size(), " bytes"));
  }
  std::memcpy(id.internal, value.data(), sizeof(id.internal));
  return id;
}

}  // namespace

absl::Status FromCuda(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": CUDA: ", cudaGetErrorString(error)));
}

absl::Status NcclWorld::SelectDevice() {
  const cudaError_t error = cudaSetDevice(options_.device);
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("rank ", options_.rank, " cannot use CUDA device ", options_.device,
                                                    ": ", cudaGetErrorString(error)));
}

absl::StatusOr<ncclComm_t> NcclWorld::Join(const std::string& name, int size, int rank) {
  if (!names_.insert(name).second)
    return absl::InvalidArgumentError(absl::StrCat("a group ", name, " was made before"));
  const absl::Time deadline = absl::Now() + options_.setup_deadline;
  MUSTER_ASSIGN_OR_RETURN(const ncclUniqueId id, AgreeOnUniqueId(store_, name, rank == 0, options_.setup_deadline));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // so that a peer that never comes does not hold us
  config.commName = name.c_str();
  ncclComm_t comm = nullptr;
  const std::string what = absl::StrCat("group ", name, ": set-up of ", size, " ranks");
  absl::Status status = FromNccl(ncclCommInitRankConfig(&comm, size, id, rank, &config), comm, what);
  if (comm != nullptr) comms_.insert(comm);
  if (status.ok()) status = Settle(comm, deadline, what);
  if (!status.ok()) return Fail(status);
  return comm;
}

void NcclWorld::Leave(ncclComm_t comm) {
  if (!failure_.ok() || comms_.erase(comm) == 0) return;
  // Finalize waits for the peers to do the same; one that does not must not hold us.
  const absl::Time deadline = absl::Now() + std::min(options_.operation_deadline, absl::Seconds(5));
  const absl::Status finalized = FromNccl(ncclCommFinalize(comm), comm, "finalize");
  if (finalized.ok() && Settle(comm, deadline, "finalize").ok()) {
    ncclCommDestroy(comm);
  } else {
    ncclCommAbort(comm);
  }
}

absl::Status NcclWorld::Settle(ncclComm_t comm, absl::Time deadline, absl::string_view what) {
  for (;;) {
    ncclResult_t state = ncclInProgress;
    MUSTER_RETURN_IF_ERROR(FromNccl(ncclCommGetAsyncError(comm, &state), comm, what));
    if (state != ncclInProgress) return FromNccl(state, comm, what);
    if (absl::Now() >= deadline)
      return absl::DeadlineExceededError(absl::StrCat(what, ": not all ranks took part in time"));
    absl::SleepFor(kPollInterval);
  }
}

absl::Status NcclWorld::Health(ncclComm_t comm, absl::string_view what) {
  ncclResult_t state = ncclSuccess;
  MUSTER_RETURN_IF_ERROR(FromNccl(ncclCommGetAsyncError(comm, &state), comm, what));
  return FromNccl(state, comm, what);
}

absl::Status NcclWorld::Fail(const absl::Status& cause) {
  if (!failure_.ok()) return failure_;
  failure_ = cause;
  for (ncclComm_t comm : comms_) ncclCommAbort(comm);
  comms_.clear();
  return failure_;
}

}  // namespace muster
