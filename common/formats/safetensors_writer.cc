// The writing half of safetensors.h.
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/file_writer.h"
#include "common/base/status_macros.h"
#include "common/formats/safetensors.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

constexpr size_t kHeaderAlignment = 8;  // the data begins on a multiple, as the reference writer does

absl::Span<const std::byte> AsBytes(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

absl::StatusOr<std::string> MakeHeader(absl::Span<const TensorToWrite> tensors,
                                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string> names;
  int64_t begin = 0;
  for (const TensorToWrite& tensor : tensors) {
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor name \"", tensor.name, "\" is reserved or given twice"));
    }
    MUSTER_ASSIGN_OR_RETURN(const int64_t bytes, StoredBytes(tensor.type, tensor.dims));
    header[tensor.name] = {{"dtype", std::string(StoredTypeName(tensor.type))},
                           {"shape", tensor.dims},
                           {"data_offsets", {begin, begin + bytes}}};
    begin += bytes;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  if (static_cast<int64_t>(text.size()) > kSafetensorsHeaderLimitBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the header of ", tensors.size(), " tensors has ", text.size(),
                                                   " bytes, over the limit of ", kSafetensorsHeaderLimitBytes));
  }
  return text;
}

// Writes one tensor's bytes.
using AppendTensor = absl::FunctionRef<absl::Status(FileWriter& writer, size_t index, size_t bytes)>;

absl::StatusOr<WrittenFile> WriteFile(const std::string& path, absl::Span<const TensorToWrite> tensors,
                                      const std::map<std::string, std::string>& metadata, AppendTensor append) {
  MUSTER_ASSIGN_OR_RETURN(const std::string header, MakeHeader(tensors, metadata));
  MUSTER_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  const uint64_t header_bytes = header.size();
  MUSTER_RETURN_IF_ERROR(writer.Append(AsBytes(&header_bytes, sizeof(header_bytes))));
  MUSTER_RETURN_IF_ERROR(writer.Append(AsBytes(header.data(), header.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    MUSTER_ASSIGN_OR_RETURN(const int64_t bytes, StoredBytes(tensors[i].type, tensors[i].dims));
    MUSTER_RETURN_IF_ERROR(append(writer, i, static_cast<size_t>(bytes)));
  }
  MUSTER_RETURN_IF_ERROR(writer.Finish());
  return WrittenFile{.bytes = writer.checksums().bytes(),
                     .crc32 = writer.checksums().crc32(),
                     .block_crc32s = writer.checksums().block_crc32s()};
}

}  // namespace

absl::StatusOr<WrittenFile> WriteSafetensors(const std::string& path, absl::Span<const TensorToWrite> tensors,
                                             const std::map<std::string, std::string>& metadata) {
  return WriteFile(path, tensors, metadata, [tensors](FileWriter& writer, size_t i, size_t bytes) {
    return writer.Append(AsBytes(tensors[i].data, bytes));
  });
}

absl::StatusOr<WrittenFile> WriteSafetensors(const std::string& path, absl::Span<const TensorToWrite> tensors,
                                             const std::map<std::string, std::string>& metadata, MakeTensor make) {
  std::vector<std::byte> data;
  return WriteFile(path, tensors, metadata, [&data, make](FileWriter& writer, size_t i, size_t bytes) {
    data.resize(bytes);
    MUSTER_RETURN_IF_ERROR(make(i, absl::MakeSpan(data)));
    return writer.Append(data);
  });
}

}  // namespace muster
