// The safetensors container (Hugging Face's format, as its documentation describes it): 8 bytes little-endian header
// length, a JSON header, then the data. The header:
//
//   {"NAME": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {string: string}}
//
// Written and read strictly: tensors fill the data without holes or overlap, sizes agree with shapes, names are not
// repeated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/mapped_file.h"

namespace muster {

enum class StoredType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };

int64_t StoredTypeBytes(StoredType type);                            // of one element
absl::string_view StoredTypeName(StoredType type);                   // "BF16"
absl::StatusOr<StoredType> ParseStoredType(absl::string_view name);  // INVALID_ARGUMENT lists the known ones

// Product of the dimensions; INVALID_ARGUMENT when one is negative or the bytes overflow 63 bits.
absl::StatusOr<int64_t> StoredBytes(StoredType type, absl::Span<const int64_t> dims);

// What is to be written. The data belongs to the caller and is dense, row-major, little-endian.
struct TensorToWrite {
  std::string name;
  StoredType type = StoredType::kF32;
  std::vector<int64_t> dims;
  const void* data = nullptr;
};

struct WrittenFile {
  int64_t bytes = 0;
  uint32_t crc32 = 0;                  // of the whole file, common/base/crc32.h
  std::vector<uint32_t> block_crc32s;  // of each block of it, as there
};

// The header's bytes may not exceed this (the limit of the reference reader).
inline constexpr int64_t kSafetensorsHeaderLimitBytes = 100'000'000;

// Writes and fsyncs one file; tensors in the given order, `metadata` under "__metadata__". After an error the file is
// gone. Makes no name durable.
absl::StatusOr<WrittenFile> WriteSafetensors(const std::string& path, absl::Span<const TensorToWrite> tensors,
                                             const std::map<std::string, std::string>& metadata);

// The same with tensors that are made when they are written, one at a time, so that they need not fit into memory
// together: `make` is called in their order and fills the bytes of one. Their `data` is not read.
using MakeTensor = absl::FunctionRef<absl::Status(size_t index, absl::Span<std::byte> data)>;
absl::StatusOr<WrittenFile> WriteSafetensors(const std::string& path, absl::Span<const TensorToWrite> tensors,
                                             const std::map<std::string, std::string>& metadata, MakeTensor make);

struct StoredTensor {
  StoredType type = StoredType::kF32;
  std::vector<int64_t> dims;
  // Into the map; aligned to the element's size only if the writer cared: copy, do not cast.
  absl::Span<const std::byte> data;
};

// An open file, memory-mapped. Immutable after Open; any thread may read. Movable: spans stay valid.
class SafetensorsFile {
 public:
  // INVALID_ARGUMENT naming file, tensor and byte offset of the first thing that is wrong.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const MappedFile& file() const { return file_; }

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  absl::Status ParseHeader();

  MappedFile file_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace muster
