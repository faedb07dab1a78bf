#include "server/job/forks.h"

namespace muster {

std::set<std::string> NeededByForks(const JobTable& table) {
  std::set<std::string> needed;
  for (const auto& item : table.jobs()) {
    const server::JobRecord& record = item.second->record;
    if (!record.job().has_forked_from() || IsFinal(record.job().state()) || !record.checkpoints().empty()) continue;
    needed.insert(record.job().forked_from().path());
  }
  return needed;
}

}  // namespace muster
