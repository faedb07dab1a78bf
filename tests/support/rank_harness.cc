#include "tests/support/rank_harness.h"

#include <memory>
#include <thread>

#include "worker/comm/local_communicator.h"

namespace muster {

std::vector<absl::Status> RunRanks(int size, const RankBody& body, absl::Duration deadline) {
  std::vector<std::unique_ptr<LocalCommunicator>> group = MakeLocalGroup(size, deadline);
  std::vector<absl::Status> statuses(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&group, &statuses, &body, rank] {
      statuses[rank] = body(*group[rank]);
      if (!statuses[rank].ok()) group[rank]->Abort(statuses[rank].message());
      group[rank].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

testing::AssertionResult AllOk(const std::vector<absl::Status>& statuses) {
  testing::AssertionResult result = testing::AssertionSuccess();
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    if (statuses[rank].ok()) continue;
    if (result) result = testing::AssertionFailure();
    result << "rank " << rank << ": " << statuses[rank].ToString() << "\n";
  }
  return result;
}

}  // namespace muster
