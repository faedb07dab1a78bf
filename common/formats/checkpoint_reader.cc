#include "common/formats/checkpoint_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/crc32.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

std::string TensorKey(StateKind kind, absl::string_view name) { return absl::StrCat(StateKindName(kind), "/", name); }

// Bytes from the start of `box`, dense and row-major, to the element at global coordinates `at`.
int64_t ByteInBox(const Box& box, const std::vector<int64_t>& at, int64_t element_bytes) {
  int64_t index = 0;
  for (size_t d = 0; d < at.size(); ++d) index = index * box.dims[d] + (at[d] - box.offset[d]);
  return index * element_bytes;
}

// Copies the box `common`, which lies in both, from the memory of `from` to that of `to`, a run of the last dimension
// at a time.
void CopyBox(const Box& common, const Box& from, const std::byte* from_data, const Box& to, std::byte* to_data,
             int64_t element_bytes) {
  const size_t rank = common.dims.size();
  const int64_t run_bytes = (rank == 0 ? 1 : common.dims.back()) * element_bytes;
  std::vector<int64_t> at = common.offset;
  while (true) {
    std::memcpy(to_data + ByteInBox(to, at, element_bytes), from_data + ByteInBox(from, at, element_bytes),
                static_cast<size_t>(run_bytes));
    size_t d = rank < 2 ? 0 : rank - 1;  // one past the innermost dimension that we step in
    while (d > 0 && ++at[d - 1] == common.offset[d - 1] + common.dims[d - 1]) {
      at[d - 1] = common.offset[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

absl::StatusOr<std::string> ReadManifest(const std::string& path) {
  constexpr int64_t kLimitBytes = int64_t{1} << 30;
  return ReadFile(path, kLimitBytes);
}

}  // namespace

absl::StatusOr<CheckpointReader> CheckpointReader::Open(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kManifestFileName);
  MUSTER_ASSIGN_OR_RETURN(const std::string json, ReadManifest(path));
  MUSTER_ASSIGN_OR_RETURN(CheckpointManifest manifest, ParseManifest(json, path));
  for (const CheckpointFile& file : manifest.files) {
    const std::string shard = absl::StrCat(directory, "/", file.name);
    const absl::StatusOr<int64_t> bytes = FileSize(shard);
    if (!bytes.ok()) return absl::DataLossError(absl::StrCat("checkpoint shard: ", bytes.status().message()));
    if (*bytes == file.bytes) continue;
    return absl::DataLossError(
        absl::StrCat("checkpoint shard ", shard, " has ", *bytes, " bytes, the manifest says ", file.bytes));
  }
  return CheckpointReader(directory, std::move(manifest));
}

CheckpointReader::CheckpointReader(std::string directory, CheckpointManifest manifest)
    : directory_(std::move(directory)), manifest_(std::move(manifest)) {
  for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
    tensor_index_[TensorKey(manifest_.tensors[i].kind, manifest_.tensors[i].name)] = i;
  }
  shards_.resize(manifest_.files.size());
}

absl::StatusOr<CheckpointReader::Shard*> CheckpointReader::OpenShard(int64_t file) {
  Shard& shard = shards_[static_cast<size_t>(file)];
  if (shard.file != nullptr) return &shard;
  const CheckpointFile& expected = manifest_.files[static_cast<size_t>(file)];
  const std::string path = absl::StrCat(directory_, "/", expected.name);
  // Checksums first: a damaged file is a loss of data, whatever its header would then say.
  MUSTER_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  if (mapped.size() != expected.bytes) {
    return absl::DataLossError(
        absl::StrCat("checkpoint shard ", path, " has ", mapped.size(), " bytes, the manifest says ", expected.bytes));
  }
  shard.verified.assign(expected.block_crc32s.size(), false);
  MUSTER_RETURN_IF_ERROR(VerifyBlocks(expected, mapped, 0, std::min<int64_t>(1, expected.bytes), shard.verified));
  uint64_t header_bytes = 0;
  if (mapped.size() >= static_cast<int64_t>(sizeof(header_bytes))) {
    std::memcpy(&header_bytes, mapped.bytes().data(), sizeof(header_bytes));
  }
  const uint64_t most = static_cast<uint64_t>(std::min(mapped.size(), kSafetensorsHeaderLimitBytes));
  MUSTER_RETURN_IF_ERROR(
      VerifyBlocks(expected, mapped, 0, static_cast<int64_t>(std::min(header_bytes, most)), shard.verified));
  MUSTER_ASSIGN_OR_RETURN(SafetensorsFile opened, SafetensorsFile::Open(path));
  shard.file = std::make_unique<SafetensorsFile>(std::move(opened));
  return &shard;
}

absl::Status CheckpointReader::VerifyBlocks(const CheckpointFile& expected, const MappedFile& mapped, int64_t first,
                                            int64_t last, std::vector<bool>& verified) const {
  for (int64_t begin = first / kChecksumBlockBytes * kChecksumBlockBytes; begin < last; begin += kChecksumBlockBytes) {
    const size_t block = static_cast<size_t>(begin / kChecksumBlockBytes);
    if (verified[block]) continue;
    const int64_t end = std::min(begin + kChecksumBlockBytes, mapped.size());
    const uint32_t crc32 = Crc32(mapped.bytes().subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    if (crc32 != expected.block_crc32s[block]) {
      return absl::DataLossError(absl::StrFormat(
          "checkpoint shard %s is damaged between offset %d and %d: the checksum there is %08x, the manifest says %08x",
          mapped.path(), begin, end, crc32, expected.block_crc32s[block]));
    }
    verified[block] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::Verify() {
  for (size_t file = 0; file < shards_.size(); ++file) {
    MUSTER_ASSIGN_OR_RETURN(Shard * shard, OpenShard(static_cast<int64_t>(file)));
    const MappedFile& mapped = shard->file->file();
    MUSTER_RETURN_IF_ERROR(VerifyBlocks(manifest_.files[file], mapped, 0, mapped.size(), shard->verified));
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::CopyCommonPart(const CheckpointTensor& stored, const StoredBox& source,
                                              const LocalTensor& tensor) {
  const Box common = Intersect(source.box, tensor.box);
  if (common.elements() == 0) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(Shard * shard, OpenShard(source.file));
  const MappedFile& mapped = shard->file->file();
  const std::string name = ShardTensorName(stored.kind, stored.name, stored.dims, source.box);
  const auto found = shard->file->tensors().find(name);
  if (found == shard->file->tensors().end() || found->second.type != stored.type ||
      found->second.dims != source.box.dims) {
    return absl::DataLossError(
        absl::StrCat(mapped.path(), " does not hold \"", name, "\" as the manifest describes it"));
  }
  const int64_t element_bytes = StoredTypeBytes(stored.type);
  const std::byte* data = found->second.data.data();
  std::vector<int64_t> last = common.offset;
  for (size_t d = 0; d < last.size(); ++d) last[d] += common.dims[d] - 1;
  const int64_t in_file = data - mapped.bytes().data();
  MUSTER_RETURN_IF_ERROR(VerifyBlocks(manifest_.files[static_cast<size_t>(source.file)], mapped,
                                      in_file + ByteInBox(source.box, common.offset, element_bytes),
                                      in_file + ByteInBox(source.box, last, element_bytes) + element_bytes,
                                      shard->verified));
  CopyBox(common, source.box, data, tensor.box, static_cast<std::byte*>(tensor.data), element_bytes);
  return absl::OkStatus();
}

absl::Status CheckpointReader::Read(const LocalTensor& tensor) {
  const auto found = tensor_index_.find(TensorKey(tensor.kind, tensor.name));
  if (found == tensor_index_.end()) {
    return absl::NotFoundError(
        absl::StrCat("checkpoint ", directory_, " has no ", StateKindName(tensor.kind), " of \"", tensor.name, "\""));
  }
  const CheckpointTensor& stored = manifest_.tensors[found->second];
  if (stored.type != tensor.type || stored.dims != tensor.global_dims) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", directory_, " has ", StateKindName(tensor.kind), " of \"", tensor.name, "\" as ",
                     StoredTypeName(stored.type), " [", absl::StrJoin(stored.dims, ","), "], this job needs ",
                     StoredTypeName(tensor.type), " [", absl::StrJoin(tensor.global_dims, ","), "]"));
  }
  int64_t filled = 0;
  for (const StoredBox& source : stored.boxes) {
    MUSTER_RETURN_IF_ERROR(CopyCommonPart(stored, source, tensor));
    filled += Intersect(source.box, tensor.box).elements();
  }
  MUSTER_CHECK(filled == tensor.box.elements(), "the box asked for of ", tensor.name, " is not inside the tensor");
  return absl::OkStatus();
}

}  // namespace muster
