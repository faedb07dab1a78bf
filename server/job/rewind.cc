#include "server/job/rewind.h"

#include "absl/strings/str_cat.h"
#include "server/cluster/checkpoint_lineage.h"

namespace muster {
namespace {

v1::Checkpoint OldestOnLineage(const Checkpoints& checkpoints) {
  v1::Checkpoint oldest;
  for (const v1::Checkpoint& checkpoint : checkpoints) {
    if (!checkpoint.on_lineage()) continue;
    if (oldest.path().empty() || checkpoint.step() < oldest.step()) oldest = checkpoint;
  }
  return oldest;
}

}  // namespace

void NoteRewind(const v1::Rewind& rewind, server::JobRecord* record) { *record->mutable_pending_rewind() = rewind; }

bool RewindsSpent(const server::JobRecord& record) {
  return record.has_pending_rewind() && record.rewinds_size() >= record.job().resolved_spec().policy().max_rewinds();
}

void TakeUpRewind(int64_t attempt, server::JobRecord* record) {
  if (!record->has_pending_rewind()) return;
  server::RewindRecord* taken = record->add_rewinds();
  taken->set_attempt(attempt);
  *taken->mutable_rewind() = record->pending_rewind();
  record->clear_pending_rewind();

  v1::Checkpoint point;
  if (const int64_t target = taken->rewind().target_step(); target > 0) {
    point = ResumePoint(record->checkpoints(), target);
    if (point.path().empty()) point = OldestOnLineage(record->checkpoints());
  }
  CutLineage(point, record->mutable_checkpoints());
}

int64_t NextSample(const server::JobRecord& record) {
  if (record.rewinds().empty()) return 0;
  const server::RewindRecord& newest = *record.rewinds().rbegin();
  for (const v1::Checkpoint& checkpoint : record.checkpoints()) {
    const bool knows = checkpoint.attempt() > newest.attempt() && checkpoint.path() == record.resumed_from().path();
    if (knows) return 0;
  }
  return newest.rewind().next_sample();
}

std::string RewindEventType(const server::JobRecord& record) {
  return absl::StrCat(record.rewinds().rbegin()->rewind().type(), "_REWIND");
}

std::string RewindSentence(const server::JobRecord& record) {
  const v1::Rewind& rewind = record.rewinds().rbegin()->rewind();
  const v1::Checkpoint& point = record.resumed_from();
  return absl::StrCat(rewind.reason(), "; goes back to ",
                      point.path().empty() ? "the beginning" : absl::StrCat("the checkpoint of step ", point.step()),
                      ", without samples ", point.consumed_samples(), " to ", rewind.next_sample() - 1);
}

}  // namespace muster
