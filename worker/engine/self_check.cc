#include "worker/engine/self_check.h"

#include <algorithm>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/engine/batches.h"
#include "worker/engine/gather_strings.h"

namespace muster {
namespace {

// The only sample of an endless source: the check's tokens, each the target of the one before; positions after them do
// not count.
class CheckSource : public SampleSource {
 public:
  CheckSource(const LogitsSelfCheck& check, int64_t sequence_length)
      : check_(check), sequence_length_(sequence_length) {}

  int64_t sequence_length() const override { return sequence_length_; }

  absl::Status Sample(int64_t /*index*/, const SampleRows& row) const override {
    FillIgnored(row);
    const size_t count = std::min(row.tokens.size(), check_.tokens.size() - 1);
    std::copy_n(check_.tokens.begin(), count, row.tokens.begin());
    std::copy_n(check_.tokens.begin() + 1, count, row.targets.begin());
    return absl::OkStatus();
  }

 private:
  const LogitsSelfCheck& check_;
  const int64_t sequence_length_;
};

double ToleranceOf(Precision precision) {
  return precision == Precision::kFp32 ? kSelfCheckTolerance : kSelfCheckTolerance16Bit;
}

}  // namespace

absl::Status CheckLogits(Communicator& world, RankEngine& engine, const LogitsSelfCheck& check) {
  const Layout& layout = engine.config.layout;
  const CheckSource source(check, layout.sequence_length);
  // A window for each replica, so that all of them see the check.
  ValidationBatches batches(&source, layout, engine.coordinate.data, layout.data * layout.micro_batch, engine.memory);
  const size_t count = std::min(static_cast<size_t>(layout.sequence_length), check.log_probabilities.size());
  std::vector<double> computed;
  const auto forward = [&](Chunk& chunk, int64_t /*micro_batch*/, const MicroBatch& batch) -> absl::Status {
    MUSTER_RETURN_IF_ERROR(chunk.Forward(batch));
    if (!chunk.has_head()) return absl::OkStatus();
    std::vector<float> losses(count);
    chunk.CopyLosses(batch.slot, absl::MakeSpan(losses));
    for (const float loss : losses) computed.push_back(-static_cast<double>(loss));
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(engine.pipeline.Evaluate(
      1, [&](int64_t i) { return batches.Read(i); }, forward));
  return ShareStatus(world, CompareSelfCheck(check, computed, ToleranceOf(layout.precision)));
}

}  // namespace muster
