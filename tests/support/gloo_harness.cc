#include "tests/support/gloo_harness.h"

#include <memory>
#include <thread>

#include "tests/support/memory_rendezvous_store.h"
#include "worker/comm/gloo_communicator.h"

namespace muster {

std::vector<absl::Status> RunGlooRanks(int size, const RankBody& body, absl::Duration deadline) {
  MemoryRendezvousStore store;
  std::vector<absl::Status> statuses(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&store, &statuses, &body, rank, size, deadline] {
      GlooOptions options;
      options.rank = rank;
      options.size = size;
      options.operation_deadline = deadline;
      absl::Status& status = statuses[static_cast<size_t>(rank)];
      auto world = MakeGlooCommunicator(options, store);
      status = world.ok() ? body(**world) : world.status();
      // Ranks that succeed leave together: a process that ends closes its connections under peers that are not done.
      if (status.ok()) status = Barrier(**world);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

}  // namespace muster
