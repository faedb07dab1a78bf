// Timelines of ranks in the Trace Event format, which chrome://tracing and ui.perfetto.dev open: one process a rank,
// and spans as "complete" events in microseconds. Format:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
//
// Pure. The parts concatenated are the file: the head, events with commas between them, the tail.
#pragma once

#include <cstdint>
#include <string>

#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

namespace muster {

// Up to the list of events, with the names of the ranks as its first ones. Times are given relative to
// `origin_nanos` (since 1970): numbers of today in microseconds have no digits left for less in a double.
std::string ChromeTraceHead(const v1::Job& job, int64_t origin_nanos);

// The events of one report, each with a comma before it.
std::string ChromeTraceEvents(int64_t rank, const v1::TraceReport& report, int64_t origin_nanos);

std::string ChromeTraceTail();

}  // namespace muster
