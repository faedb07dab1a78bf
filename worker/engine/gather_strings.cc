#include "worker/engine/gather_strings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::Span<std::byte> AsBytes(void* data, size_t size) { return {static_cast<std::byte*>(data), size}; }

}  // namespace

absl::StatusOr<std::vector<std::string>> GatherStrings(Communicator& group, absl::string_view mine) {
  const size_t ranks = static_cast<size_t>(group.size());
  int64_t length = static_cast<int64_t>(mine.size());
  std::vector<int64_t> lengths(ranks);
  MUSTER_RETURN_IF_ERROR(
      AllGather(group, AsBytes(&length, sizeof(length)), AsBytes(lengths.data(), ranks * sizeof(length))));

  const size_t longest = static_cast<size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::vector<std::string> texts(ranks);
  if (longest == 0) return texts;
  std::string padded(mine);
  padded.resize(longest);
  std::string all(ranks * longest, '\0');
  MUSTER_RETURN_IF_ERROR(AllGather(group, AsBytes(padded.data(), longest), AsBytes(all.data(), all.size())));
  for (size_t rank = 0; rank < ranks; ++rank) {
    texts[rank] = all.substr(rank * longest, static_cast<size_t>(lengths[rank]));
  }
  return texts;
}

absl::Status ShareStatus(Communicator& group, const absl::Status& mine) {
  // One character for the code, so that an empty text is OK.
  std::string text;
  if (!mine.ok()) text = absl::StrCat(std::string(1, static_cast<char>(mine.code())), mine.message());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> texts, GatherStrings(group, text));
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].empty()) continue;
    return absl::Status(static_cast<absl::StatusCode>(texts[rank][0]),
                        absl::StrCat("rank ", rank, ": ", texts[rank].substr(1)));
  }
  return absl::OkStatus();
}

}  // namespace muster
