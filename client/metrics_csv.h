// Metrics as comma-separated values (RFC 4180): a row for each step, a column for each series. Pure.
#pragma once

#include <string>

#include "muster/v1/job.pb.h"

namespace muster {

// "step,time,loss,...": time in RFC 3339, UTC; empty where a series has no value for the step.
std::string MetricsCsv(const v1::QueryMetricsResponse& metrics);

}  // namespace muster
