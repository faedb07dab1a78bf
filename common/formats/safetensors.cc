#include "common/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/formats/json_fields.h"

namespace muster {
namespace {

struct TypeInfo {
  StoredType type;
  absl::string_view name;
  int64_t bytes;
};

constexpr std::array<TypeInfo, 10> kTypes = {{{StoredType::kF64, "F64", 8},
                                              {StoredType::kF32, "F32", 4},
                                              {StoredType::kF16, "F16", 2},
                                              {StoredType::kBF16, "BF16", 2},
                                              {StoredType::kI64, "I64", 8},
                                              {StoredType::kI32, "I32", 4},
                                              {StoredType::kI16, "I16", 2},
                                              {StoredType::kI8, "I8", 1},
                                              {StoredType::kU8, "U8", 1},
                                              {StoredType::kBool, "BOOL", 1}}};

const TypeInfo& InfoOf(StoredType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(), [type](const TypeInfo& info) { return info.type == type; });
}

constexpr int64_t kLengthBytes = 8;

// A tensor of the header with the bytes it claims.
struct Claim {
  std::string name;
  int64_t begin = 0;
  int64_t end = 0;
};

// Sorted by begin, the claims must tile [0, data_bytes).
absl::Status CheckTiling(std::vector<Claim> claims, int64_t data_start, int64_t data_bytes, const std::string& path) {
  std::sort(claims.begin(), claims.end(),
            [](const Claim& a, const Claim& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  int64_t at = 0;
  for (const Claim& claim : claims) {
    if (claim.end > data_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": tensor \"", claim.name, "\" ends ", claim.end,
                                                     " bytes into data of ", data_bytes, ": it is truncated"));
    }
    if (claim.begin != at) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor \"", claim.name, "\" begins at byte ", data_start + claim.begin,
          ", the one before ends at byte ", data_start + at, claim.begin < at ? ": they overlap" : ": a hole"));
    }
    at = claim.end;
  }
  if (at == data_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": the tensors end at byte ", data_start + at, ", the file at ",
                                                 data_start + data_bytes, ": bytes belong to no tensor"));
}

absl::StatusOr<Claim> ParseTensor(const JsonField& field, const std::string& name, StoredTensor& tensor) {
  MUSTER_RETURN_IF_ERROR(field.CheckKeys({"dtype", "shape", "data_offsets"}));
  MUSTER_ASSIGN_OR_RETURN(const JsonField dtype, field.Member("dtype"));
  MUSTER_ASSIGN_OR_RETURN(const std::string type_name, dtype.String());
  absl::StatusOr<StoredType> type = ParseStoredType(type_name);
  if (!type.ok()) return dtype.Error(type.status().message());
  tensor.type = *type;
  MUSTER_ASSIGN_OR_RETURN(const JsonField shape, field.Member("shape"));
  MUSTER_ASSIGN_OR_RETURN(tensor.dims, shape.Integers());
  absl::StatusOr<int64_t> bytes = StoredBytes(tensor.type, tensor.dims);
  if (!bytes.ok()) return shape.Error(bytes.status().message());
  MUSTER_ASSIGN_OR_RETURN(const JsonField offsets_field, field.Member("data_offsets"));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, offsets_field.Integers());
  if (offsets.size() != 2 || offsets[0] > offsets[1]) return offsets_field.Error("expected [begin, end]");
  if (offsets[1] - offsets[0] != *bytes) {
    return offsets_field.Error(absl::StrCat("spans ", offsets[1] - offsets[0], " bytes, type and shape need ", *bytes));
  }
  return Claim{name, offsets[0], offsets[1]};
}

}  // namespace

int64_t StoredTypeBytes(StoredType type) { return InfoOf(type).bytes; }

absl::string_view StoredTypeName(StoredType type) { return InfoOf(type).name; }

absl::StatusOr<StoredType> ParseStoredType(absl::string_view name) {
  std::vector<absl::string_view> known;
  for (const TypeInfo& info : kTypes) {
    if (info.name == name) return info.type;
    known.push_back(info.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown dtype \"", name, "\"; known are ", absl::StrJoin(known, ", ")));
}

absl::StatusOr<int64_t> StoredBytes(StoredType type, absl::Span<const int64_t> dims) {
  int64_t bytes = StoredTypeBytes(type);
  for (int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) {
      return absl::InvalidArgumentError(absl::StrCat("the shape [", absl::StrJoin(dims, ", "), "] has no valid size"));
    }
  }
  return bytes;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  SafetensorsFile opened(std::move(file));
  MUSTER_RETURN_IF_ERROR(opened.ParseHeader());
  return opened;
}

absl::Status SafetensorsFile::ParseHeader() {
  const absl::Span<const std::byte> bytes = file_.bytes();
  const std::string& path = file_.path();
  if (file_.size() < kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", file_.size(), " bytes are too few for the header's length at byte 0"));
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > static_cast<uint64_t>(kSafetensorsHeaderLimitBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": header length ", header_bytes,
                                                   " at byte 0 is over the limit of ", kSafetensorsHeaderLimitBytes,
                                                   "; is this a safetensors file?"));
  }
  const int64_t data_start = kLengthBytes + static_cast<int64_t>(header_bytes);
  if (data_start > file_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the header ends at byte ", data_start, ", the file at ",
                                                   file_.size(), ": it is truncated"));
  }
  const absl::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, header_bytes);
  if (header.empty() || header[0] != '{') {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected '{' at byte ", kLengthBytes));
  }
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(header, absl::StrCat(path, " header")));

  std::vector<Claim> claims;
  for (const auto& item : json.items()) {
    const JsonField field(item.value(), path, item.key());
    if (item.key() == "__metadata__") {
      MUSTER_ASSIGN_OR_RETURN(metadata_, field.Strings());
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(const Claim claim, ParseTensor(field, item.key(), tensors_[item.key()]));
    claims.push_back(claim);
  }
  MUSTER_RETURN_IF_ERROR(CheckTiling(claims, data_start, file_.size() - data_start, path));
  for (const Claim& claim : claims) {
    tensors_[claim.name].data =
        bytes.subspan(static_cast<size_t>(data_start + claim.begin), static_cast<size_t>(claim.end - claim.begin));
  }
  return absl::OkStatus();
}

}  // namespace muster
