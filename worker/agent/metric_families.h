// The worker's metrics as Prometheus families, registered from the catalog (common/rpc/metric_catalog.h), and sets of
// series that go away together.
//
// Thread-safe as the registry is; used by the exporter on the loop while HTTP threads collect.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <map>
#include <string>
#include <utility>

namespace muster {

class MetricFamilies {
 public:
  // Registers all that muster-worker exports.
  explicit MetricFamilies(prometheus::Registry* registry);

  // REQUIRES: the catalog has a gauge, or a counter, of this name for muster-worker.
  prometheus::Family<prometheus::Gauge>& gauge(const std::string& name) const;
  prometheus::Family<prometheus::Counter>& counter(const std::string& name) const;

 private:
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> gauges_;
  std::map<std::string, prometheus::Family<prometheus::Counter>*> counters_;
};

// Series of one job, or of one rank: all carry `labels`, and all are removed when this ends.
class SeriesSet {
 public:
  using Labels = std::map<std::string, std::string>;

  // `families` outlives this.
  SeriesSet(const MetricFamilies* families, Labels labels) : families_(families), labels_(std::move(labels)) {}
  ~SeriesSet();
  SeriesSet(const SeriesSet&) = delete;
  SeriesSet& operator=(const SeriesSet&) = delete;

  // `more` labels beside those of the set.
  void Set(const std::string& gauge, double value, const Labels& more = {});
  void Add(const std::string& counter, double increment, const Labels& more = {});
  // A counter whose value is known whole; it never goes down.
  void RaiseTo(const std::string& counter, double value);

 private:
  using Key = std::pair<std::string, Labels>;

  prometheus::Counter& CounterOf(const std::string& name, const Labels& more);

  const MetricFamilies* const families_;
  const Labels labels_;
  std::map<Key, prometheus::Gauge*> gauges_;
  std::map<Key, prometheus::Counter*> counters_;
};

}  // namespace muster
