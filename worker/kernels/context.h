// What the kernels of one rank share: the device and its stream, the number of threads, matmul primitives made so far,
// and the workspace. The linked back-end (cpu/ or cuda/) defines all of it.
//
// Owned by the rank's engine; made after the arena, destroyed before it. For the one thread that trains: several ranks
// in one process have a context each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/plan/device_constants.h"
#include "worker/tensor/device.h"
#include "worker/tensor/view.h"

namespace muster {

// The device that the linked back-end runs on: the processor, or the CUDA device of that ordinal. UNAVAILABLE with the
// driver's words when it cannot be opened.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(int ordinal);

// Name -> version of the libraries that decide the linked back-end's bits, for the numerics fingerprint: "onednn" ->
// "2.6.3".
std::map<std::string, std::string> KernelLibraries();

struct KernelOptions {
  // Threads on which the CPU's kernels run, at least 1. A field of the job and never derived from the cores, because
  // matmul's bits change with it. 1 suits as many ranks as cores; CUDA ignores it.
  int threads = 1;
};

class KernelContext {
 public:
  class Backend;  // cpu/backend.h or cuda/backend.h

  // `workspace`: u8 of at least KernelWorkspaceBytes(options.threads), in the space kDevice of `device`. Both outlive
  // the context.
  static absl::StatusOr<std::unique_ptr<KernelContext>> Create(Device& device, const KernelOptions& options,
                                                               const Tensor& workspace);
  ~KernelContext();
  KernelContext(const KernelContext&) = delete;
  KernelContext& operator=(const KernelContext&) = delete;

  Device& device() const { return device_; }
  int threads() const { return options_.threads; }
  Backend& backend() const { return *backend_; }  // for the kernels

 private:
  KernelContext(Device& device, const KernelOptions& options, std::unique_ptr<Backend> backend);

  Device& device_;
  const KernelOptions options_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace muster
