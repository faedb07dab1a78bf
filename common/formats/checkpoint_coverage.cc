// Boxes, and how they make up tensors: the geometry of checkpoint_manifest.h.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/formats/checkpoint_manifest.h"

namespace muster {
namespace {

std::string Describe(const CheckpointTensor& tensor) {
  return absl::StrCat(StateKindName(tensor.kind), " of \"", tensor.name, "\"");
}

std::string Describe(const Box& box) {
  return absl::StrCat("[", absl::StrJoin(box.offset, ","), "]+[", absl::StrJoin(box.dims, ","), "]");
}

bool Inside(const Box& box, const std::vector<int64_t>& dims) {
  if (box.offset.size() != dims.size() || box.dims.size() != dims.size()) return false;
  for (size_t d = 0; d < dims.size(); ++d) {
    // Not offset + dims <= size: that could overflow.
    if (box.offset[d] < 0 || box.dims[d] < 0 || box.offset[d] > dims[d] || box.dims[d] > dims[d] - box.offset[d]) {
      return false;
    }
  }
  return true;
}

// Each box lies in a file that exists and inside its tensor.
absl::Status CheckBoxes(const CheckpointTensor& tensor, int64_t files) {
  for (const StoredBox& stored : tensor.boxes) {
    if (stored.file < 0 || stored.file >= files) {
      return absl::InvalidArgumentError(absl::StrCat(Describe(tensor), " names file ", stored.file, " of ", files));
    }
    if (!Inside(stored.box, tensor.dims)) {
      return absl::InvalidArgumentError(absl::StrCat(Describe(tensor), ": box ", Describe(stored.box),
                                                     " is not inside [", absl::StrJoin(tensor.dims, ","), "]"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTensorCoverage(const CheckpointTensor& tensor, int64_t files) {
  MUSTER_RETURN_IF_ERROR(CheckBoxes(tensor, files));
  std::vector<const Box*> boxes;
  for (const StoredBox& stored : tensor.boxes) boxes.push_back(&stored.box);
  // Ordered by the outermost dimension, a box can only meet those that begin before it ends.
  const auto begin = [](const Box* box) { return box->offset.empty() ? 0 : box->offset[0]; };
  const auto end = [](const Box* box) { return box->offset.empty() ? 1 : box->offset[0] + box->dims[0]; };
  std::sort(boxes.begin(), boxes.end(), [&](const Box* a, const Box* b) { return begin(a) < begin(b); });
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t j = i + 1; j < boxes.size() && begin(boxes[j]) < end(boxes[i]); ++j) {
      if (Intersect(*boxes[i], *boxes[j]).elements() == 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(tensor), ": boxes ", Describe(*boxes[i]), " and ", Describe(*boxes[j]), " overlap"));
    }
  }
  // Counted only now: boxes that overlap could add up to more than any integer.
  int64_t covered = 0;
  for (const Box* box : boxes) covered += box->elements();
  const Box whole{std::vector<int64_t>(tensor.dims.size(), 0), tensor.dims};
  if (covered == whole.elements()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Describe(tensor), ": its boxes hold ", covered, " of ", whole.elements(), " elements"));
}

}  // namespace

int64_t Box::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

bool operator==(const Box& a, const Box& b) { return a.offset == b.offset && a.dims == b.dims; }

bool operator==(const CheckpointId& a, const CheckpointId& b) { return a.attempt == b.attempt && a.step == b.step; }

bool operator<(const CheckpointId& a, const CheckpointId& b) {
  return std::pair(a.attempt, a.step) < std::pair(b.attempt, b.step);
}

Box Intersect(const Box& a, const Box& b) {
  Box common;
  bool empty = false;
  for (size_t d = 0; d < a.dims.size(); ++d) {
    const int64_t begin = std::max(a.offset[d], b.offset[d]);
    const int64_t end = std::min(a.offset[d] + a.dims[d], b.offset[d] + b.dims[d]);
    common.offset.push_back(begin);
    common.dims.push_back(std::max<int64_t>(0, end - begin));
    empty = empty || end <= begin;
  }
  if (empty) std::fill(common.dims.begin(), common.dims.end(), 0);
  return common;
}

std::string ShardTensorName(StateKind kind, absl::string_view tensor, absl::Span<const int64_t> global_dims,
                            const Box& box) {
  const std::string name = absl::StrCat(StateKindName(kind), "/", tensor);
  if (absl::MakeConstSpan(box.dims) == global_dims) return name;
  std::vector<std::string> ranges;
  for (size_t d = 0; d < box.dims.size(); ++d) ranges.push_back(absl::StrCat(box.offset[d], ":", box.dims[d]));
  return absl::StrCat(name, "@", absl::StrJoin(ranges, ","));
}

absl::Status MergeShardRecords(absl::Span<const ShardRecord> records, CheckpointManifest& manifest) {
  std::map<std::pair<StateKind, std::string>, size_t> index;
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    index[{manifest.tensors[i].kind, manifest.tensors[i].name}] = i;
  }
  for (const ShardRecord& record : records) {
    const int64_t file = static_cast<int64_t>(manifest.files.size());
    manifest.files.push_back(record.file);
    for (const CheckpointTensor& tensor : record.tensors) {
      const auto inserted = index.insert({{tensor.kind, tensor.name}, manifest.tensors.size()});
      if (inserted.second) {
        manifest.tensors.push_back({tensor.name, tensor.kind, tensor.type, tensor.dims, {}});
      }
      CheckpointTensor& merged = manifest.tensors[inserted.first->second];
      if (merged.type != tensor.type || merged.dims != tensor.dims) {
        return absl::InvalidArgumentError(
            absl::StrCat(record.file.name, " and another shard disagree about type or shape of ", Describe(tensor)));
      }
      for (const StoredBox& stored : tensor.boxes) merged.boxes.push_back({file, stored.box});
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCoverage(const CheckpointManifest& manifest) {
  std::map<std::pair<StateKind, std::string>, int> seen;
  for (const CheckpointTensor& tensor : manifest.tensors) {
    if (seen[{tensor.kind, tensor.name}]++ > 0) {
      return absl::InvalidArgumentError(absl::StrCat(Describe(tensor), " is listed twice"));
    }
    MUSTER_RETURN_IF_ERROR(CheckTensorCoverage(tensor, static_cast<int64_t>(manifest.files.size())));
  }
  return absl::OkStatus();
}

}  // namespace muster
