// What `muster watch` shows, made from WatchJob's responses: a block of lines for a terminal, plain lines elsewhere.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/terminal.h"
#include "muster/v1/job.pb.h"

namespace muster {

class WatchView {
 public:
  WatchView(Palette palette, int width) : palette_(palette), width_(width) {}

  // Takes up a change; returns the lines of its new events, oldest first.
  std::vector<std::string> Update(const v1::WatchJobResponse& response);

  // The job as it is now: state, step bar, loss, time, memory. Each line fits the width.
  std::vector<std::string> Block() const;

  // The same facts as one plain line, when there is something new to say; empty otherwise.
  std::string PlainLine();

 private:
  std::string HeadLine() const;
  std::string StepLine() const;
  std::string LossLine() const;
  std::string TimeLine() const;
  std::vector<std::string> MemoryLines() const;

  const Palette palette_;
  const int width_;
  v1::Job job_;
  std::vector<double> losses_;  // one for each step seen
  int64_t loss_step_ = 0;
  int64_t last_event_ = 0;
  std::string last_plain_;  // what PlainLine said last, without what changes always
};

// "12:03:31  rank 2 killed by signal 9 on worker-0": local time.
std::string EventLine(const v1::Event& event, const Palette& palette);

// "4 ranks: data 2 x pipeline 2"
std::string LayoutText(const v1::Job& job);

// Green for RUNNING and COMPLETED, red for FAILED, yellow for what is on its way.
Colour StateColour(v1::JobState state);

}  // namespace muster
