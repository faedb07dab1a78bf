#include "worker/agent/metric_families.h"

#include <cstring>

#include "common/base/check.h"
#include "common/rpc/metric_catalog.h"

namespace muster {
namespace {

SeriesSet::Labels Joined(const SeriesSet::Labels& labels, const SeriesSet::Labels& more) {
  SeriesSet::Labels all = labels;
  all.insert(more.begin(), more.end());
  return all;
}

}  // namespace

MetricFamilies::MetricFamilies(prometheus::Registry* registry) {
  for (const MetricInfo& metric : MetricCatalog()) {
    if (std::strcmp(metric.exporter, "muster-worker") != 0) continue;
    if (metric.kind == MetricKind::kGauge) {
      gauges_[metric.name] = &prometheus::BuildGauge().Name(metric.name).Help(metric.help).Register(*registry);
    } else {
      counters_[metric.name] = &prometheus::BuildCounter().Name(metric.name).Help(metric.help).Register(*registry);
    }
  }
}

prometheus::Family<prometheus::Gauge>& MetricFamilies::gauge(const std::string& name) const {
  const auto found = gauges_.find(name);
  MUSTER_CHECK(found != gauges_.end(), "no gauge ", name, " in the catalog of muster-worker");
  return *found->second;
}

prometheus::Family<prometheus::Counter>& MetricFamilies::counter(const std::string& name) const {
  const auto found = counters_.find(name);
  MUSTER_CHECK(found != counters_.end(), "no counter ", name, " in the catalog of muster-worker");
  return *found->second;
}

SeriesSet::~SeriesSet() {
  for (const auto& [key, gauge] : gauges_) families_->gauge(key.first).Remove(gauge);
  for (const auto& [key, counter] : counters_) families_->counter(key.first).Remove(counter);
}

void SeriesSet::Set(const std::string& gauge, double value, const Labels& more) {
  prometheus::Gauge*& series = gauges_[{gauge, more}];
  if (series == nullptr) series = &families_->gauge(gauge).Add(Joined(labels_, more));
  series->Set(value);
}

void SeriesSet::Add(const std::string& counter, double increment, const Labels& more) {
  CounterOf(counter, more).Increment(increment);
}

void SeriesSet::RaiseTo(const std::string& counter, double value) {
  prometheus::Counter& series = CounterOf(counter, {});
  if (value > series.Value()) series.Increment(value - series.Value());
}

prometheus::Counter& SeriesSet::CounterOf(const std::string& name, const Labels& more) {
  prometheus::Counter*& series = counters_[{name, more}];
  if (series == nullptr) series = &families_->counter(name).Add(Joined(labels_, more));
  return *series;
}

}  // namespace muster
