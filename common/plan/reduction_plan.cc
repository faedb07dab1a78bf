#include "common/plan/reduction_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/plan/ledger.h"

namespace muster {
namespace {

// Fills buckets up to a number of elements that one replica sums.
class BucketFiller {
 public:
  BucketFiller(int64_t data, int64_t part_elements) : data_(data), part_elements_(part_elements) {}

  void Add(size_t gradient, int64_t unit, const ShardPiece& piece) {
    const int64_t row_elements = piece.row_elements();
    MUSTER_CHECK(row_elements <= part_elements_, "a row of ", row_elements, " elements, buckets of ", part_elements_);
    const int64_t most_rows = (piece.rows() + data_ - 1) / data_;  // of a replica
    for (int64_t row = 0; row < most_rows;) {
      const int64_t room = (part_elements_ - filled_) / row_elements;
      if (buckets_.empty() || buckets_.back().unit != unit || room == 0) {
        buckets_.push_back({.unit = unit, .segments = {}});
        filled_ = 0;
        continue;
      }
      const int64_t rows = std::min(room, most_rows - row);
      buckets_.back().segments.push_back(Segment(gradient, piece, row, rows));
      filled_ += rows * row_elements;
      row += rows;
    }
  }

  std::vector<ReductionBucket> Take() && { return std::move(buckets_); }

 private:
  // Rows [row, row + rows) of each replica's own, as far as it has them.
  ReductionSegment Segment(size_t gradient, const ShardPiece& piece, int64_t row, int64_t rows) const {
    ReductionSegment segment{.gradient = gradient, .runs = {}};
    for (int64_t replica = 0; replica < data_; ++replica) {
      const RowBlock block = ReplicaRows(piece.rows(), data_, replica);
      const int64_t first = std::min(block.first + row, block.last);
      const int64_t last = std::min(first + rows, block.last);
      segment.runs.push_back({piece.local_first + first * piece.row_elements(), (last - first) * piece.row_elements()});
    }
    return segment;
  }

  const int64_t data_;
  const int64_t part_elements_;
  std::vector<ReductionBucket> buckets_;
  int64_t filled_ = 0;  // elements of the last bucket that one replica sums, at the most
};

}  // namespace

std::vector<GradientInfo> GradientsOf(const ModelShape& shape, const std::vector<UnitRange>& chunks, int64_t tensor,
                                      int64_t tensor_rank) {
  const bool has_embedding = chunks.front().first == 0;
  const bool has_head = chunks.back().last == shape.units();
  std::vector<GradientInfo> gradients;
  const auto add = [&](std::string entry, const ParameterInfo& parameter, int64_t unit) {
    gradients.push_back({.entry = std::move(entry),
                         .parameter = parameter,
                         .shard = ShardOnTensorRank(shape, parameter, tensor, tensor_rank),
                         .unit = unit});
  };
  for (const ParameterInfo& parameter : ChunkParameters(shape, chunks)) {
    const bool tied = shape.tied && parameter.name == kTiedParameter;
    if (!tied || has_embedding) add(absl::StrCat("gradient/", parameter.name), parameter, parameter.unit);
    if (tied && has_head) add(kTiedHeadGradient, parameter, shape.units() - 1);
  }
  std::stable_sort(gradients.begin(), gradients.end(),
                   [](const GradientInfo& a, const GradientInfo& b) { return a.unit > b.unit; });
  return gradients;
}

ReductionPlan PlanReduction(const std::vector<GradientInfo>& gradients, int64_t data, int64_t part_elements) {
  BucketFiller during(data, part_elements);
  BucketFiller after(data, part_elements);
  for (size_t i = 0; i < gradients.size(); ++i) {
    for (const ShardPiece& piece : gradients[i].shard.pieces) {
      if (piece.partial_gradients) {
        after.Add(i, /*unit=*/-1, piece);
      } else {
        during.Add(i, gradients[i].unit, piece);
      }
    }
  }
  return {.during_backward = std::move(during).Take(), .after_backward = std::move(after).Take()};
}

int64_t ReductionPartElements(const ModelShape& shape, const Layout& layout) {
  std::vector<int64_t> by_unit(static_cast<size_t>(shape.units()), 0);
  for (const ParameterInfo& parameter : Parameters(shape)) {
    // The first rank of a tensor group holds at least as much as any other.
    for (const ShardPiece& piece : ShardOnTensorRank(shape, parameter, layout.tensor, 0).pieces) {
      by_unit[static_cast<size_t>(parameter.unit)] +=
          (piece.rows() + layout.data - 1) / layout.data * piece.row_elements();
    }
  }
  return *std::max_element(by_unit.begin() + 1, by_unit.end() - 1);
}

int64_t ReductionScratchBytes(const ModelShape& shape, const Layout& layout) {
  if (layout.data == 1) return 0;
  return 2 * (layout.data - 1) * ReductionPartElements(shape, layout) * static_cast<int64_t>(sizeof(float));
}

}  // namespace muster
