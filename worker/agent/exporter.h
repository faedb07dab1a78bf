// What /metrics of a muster-worker shows: the jobs and ranks of this host, from what the ranks report.
//
// Owned by the agent; on the loop, but for Text().
#pragma once

#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/event_loop.h"
#include "muster/v1/worker.pb.h"
#include "worker/agent/metric_families.h"
#include "worker/agent/rank_key.h"

namespace muster {

class Exporter {
 public:
  // The series of a job stay for `retention` after its last rank here ended. The pointers outlive this.
  Exporter(EventLoop* loop, const Clock* clock, absl::Duration retention, const std::string& version);
  ~Exporter();

  void OnRankStarted(const v1::Assignment& assignment, int64_t memory_limit_bytes);
  void OnReport(const v1::Assignment& assignment, const v1::RankReport& report);
  void OnResident(const RankKey& rank, int64_t bytes);
  void OnRankEnded(const RankKey& rank);
  void OnDevices(int64_t free, int64_t busy, int64_t unhealthy);

  // The text exposition format. Any thread.
  std::string Text() const;

 private:
  struct Job;

  void OnStarted(SeriesSet& rank, const v1::RankStarted& started);
  void OnStep(Job& job, SeriesSet& rank, const v1::Assignment& assignment, const v1::StepReport& step);
  void OnLeaderStep(Job& job, const v1::StepReport& step);

  EventLoop* const loop_;
  const Clock* const clock_;
  const absl::Duration retention_;

  const std::shared_ptr<prometheus::Registry> registry_;
  const MetricFamilies families_;
  SeriesSet worker_;
  std::map<std::string, std::unique_ptr<Job>> jobs_;  // by id
};

}  // namespace muster
