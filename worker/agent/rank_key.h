// Names one rank of one attempt of one job: what every table of the agent is keyed by.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace muster {

struct RankKey {
  std::string job_id;
  int64_t attempt = 0;
  int64_t rank = 0;

  // Of any message with job_id, attempt and rank.
  template <typename Message>
  static RankKey Of(const Message& message) {
    return RankKey{message.job_id(), message.attempt(), message.rank()};
  }

  bool SameGang(const RankKey& other) const { return job_id == other.job_id && attempt == other.attempt; }

  std::string ToString() const { return absl::StrCat(job_id, " attempt ", attempt, " rank ", rank); }

  friend bool operator<(const RankKey& a, const RankKey& b) {
    return std::tie(a.job_id, a.attempt, a.rank) < std::tie(b.job_id, b.attempt, b.rank);
  }
  friend bool operator==(const RankKey& a, const RankKey& b) {
    return std::tie(a.job_id, a.attempt, a.rank) == std::tie(b.job_id, b.attempt, b.rank);
  }
};

}  // namespace muster
