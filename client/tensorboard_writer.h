// TensorBoard event files: a TFRecord stream of Event messages. Pure.
//
// Each record is the payload's length (8 bytes, little-endian), the masked CRC-32C of those bytes, the payload, and the
// masked CRC-32C of it; a CRC is masked as ((crc >> 15) | (crc << 17)) + 0xa282ead8
// (tensorflow/core/lib/io/record_writer.cc and tensorflow/core/lib/hash/crc32c.h).
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "muster/v1/job.pb.h"

namespace muster {

std::string TfRecord(absl::string_view payload);

// A whole file with every point of every series, in the order of steps. Tags are the names without "muster_job_", with
// the label behind a slash: "phase_seconds/forward".
std::string TensorBoardFile(const v1::QueryMetricsResponse& metrics);

// "phase_seconds/forward"
std::string TagOf(const v1::MetricSeries& series);

}  // namespace muster
