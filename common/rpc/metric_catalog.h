// Every metric that Muster exports, once: its name, kind, unit, labels and meaning. The exporters register their
// families from here and docs/metrics.md is written from here, so the page and the documentation cannot differ.
//
// Constant data; any thread.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace muster {

enum class MetricKind { kGauge, kCounter };

struct MetricInfo {
  const char* name;  // prefix muster_, base unit, _total on counters
  MetricKind kind;
  const char* unit;                 // "bytes", "seconds", "nats per token", "" for counts
  const char* exporter;             // the program whose /metrics has it
  std::vector<const char*> labels;  // besides those that Prometheus adds
  const char* help;                 // one sentence
};

// In the order of the documentation.
absl::Span<const MetricInfo> MetricCatalog();

// REQUIRES: the name is in the catalog.
const MetricInfo& MetricOf(const char* name);

// The whole of docs/metrics.md.
std::string MetricDocumentation();

}  // namespace muster
