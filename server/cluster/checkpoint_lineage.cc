#include "server/cluster/checkpoint_lineage.h"

#include <algorithm>

namespace muster {

bool RecordCheckpoint(const v1::Checkpoint& reported, Checkpoints* checkpoints) {
  for (v1::Checkpoint& known : *checkpoints) {
    if (known.path() != reported.path()) continue;
    known.set_bytes(known.bytes() + reported.bytes());
    known.set_seconds(std::max(known.seconds(), reported.seconds()));
    return false;
  }
  v1::Checkpoint* added = checkpoints->Add();
  *added = reported;
  added->set_on_lineage(true);
  return true;
}

v1::Checkpoint ResumePoint(const Checkpoints& checkpoints, int64_t at_most_step) {
  v1::Checkpoint newest;
  for (const v1::Checkpoint& checkpoint : checkpoints) {
    if (!checkpoint.on_lineage() || (at_most_step > 0 && checkpoint.step() > at_most_step)) continue;
    if (newest.path().empty() || checkpoint.step() >= newest.step()) newest = checkpoint;
  }
  return newest;
}

void ForgetCheckpoint(const std::string& path, Checkpoints* checkpoints) {
  const auto bad = std::find_if(checkpoints->begin(), checkpoints->end(),
                                [&](const v1::Checkpoint& checkpoint) { return checkpoint.path() == path; });
  if (bad != checkpoints->end()) checkpoints->erase(bad);
}

void CutLineage(const v1::Checkpoint& resume_point, Checkpoints* checkpoints) {
  for (v1::Checkpoint& checkpoint : *checkpoints) {
    const bool behind = checkpoint.step() > resume_point.step() ||
                        (checkpoint.step() == resume_point.step() && checkpoint.path() != resume_point.path());
    if (behind) checkpoint.set_on_lineage(false);
  }
}

std::vector<std::string> TrimCheckpoints(int64_t keep, const std::set<std::string>& in_use, Checkpoints* checkpoints) {
  std::vector<int64_t> steps;
  for (const v1::Checkpoint& checkpoint : *checkpoints) {
    if (checkpoint.on_lineage()) steps.push_back(checkpoint.step());
  }
  std::sort(steps.rbegin(), steps.rend());
  const auto kept = std::min<size_t>(steps.size(), std::max<int64_t>(keep, 1));
  const int64_t oldest_kept = kept == 0 ? 0 : steps[kept - 1];

  std::vector<std::string> forgotten;
  Checkpoints remaining;
  for (v1::Checkpoint& checkpoint : *checkpoints) {
    if (in_use.count(checkpoint.path()) > 0 || (checkpoint.on_lineage() && checkpoint.step() >= oldest_kept)) {
      *remaining.Add() = std::move(checkpoint);
    } else {
      forgotten.push_back(checkpoint.path());
    }
  }
  checkpoints->Swap(&remaining);
  return forgotten;
}

}  // namespace muster
