// What ranks have said that the coordinator must not lose: repeated when a new session begins, as the old one may have
// taken any of it down with it. Steps that came while there was no session are kept too, as far as room goes.
//
// Owned by the agent; on the loop.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "muster/v1/worker.pb.h"
#include "worker/agent/rank_key.h"

namespace muster {

class ReportBacklog {
 public:
  // Of each rank, of each kind; the oldest go first. A validation or a checkpoint is at most every few steps, so this
  // covers hours without a coordinator at no more than a megabyte a rank.
  static constexpr size_t kKeptSteps = 1024;
  static constexpr size_t kKeptOthers = 256;

  // `sent`: it went out on a living session.
  void Add(const v1::RankReport& report, bool sent);

  // What a new session begins with, in the order in which each rank said it; marks it as sent.
  std::vector<v1::RankReport> TakeForNewSession();

  // All that is kept of one rank, sent or not, in its order. Empty: nothing.
  std::vector<v1::RankReport> Of(const RankKey& rank) const;

  void Forget(const RankKey& rank) { ranks_.erase(rank); }

 private:
  struct Kept {
    std::deque<v1::RankReport> others;        // started, validations, checkpoints, events, finished
    std::deque<v1::RankReport> unsent_steps;  // of the time without a session
    v1::RankReport newest_step;               // sequence 0: none
  };

  static std::vector<v1::RankReport> InOrder(const Kept& kept);

  std::map<RankKey, Kept> ranks_;
};

}  // namespace muster
