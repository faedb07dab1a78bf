// Random jobs, small enough to train in milliseconds, whose layouts are any product of what the engine can do. A draw
// that a job file could not ask for is left to the engine's own checks to refuse, and is drawn again.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "worker/engine/engine_config.h"

namespace muster {

// The same numbers on every platform, unlike the standard library's distributions.
class Draw {
 public:
  // Independent for every (seed, index).
  Draw(uint64_t seed, uint64_t index);

  int64_t Below(int64_t bound);  // 0 .. bound-1
  bool OneIn(int64_t n) { return Below(n) == 0; }
  template <typename T>
  T Of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Below(static_cast<int64_t>(choices.size())))];
  }

 private:
  uint64_t state_;
};

// A job of a few steps on at most kMostDrawnRanks ranks that passes every check of the engine.
inline constexpr int64_t kMostDrawnRanks = 8;
EngineConfig DrawJob(Draw& draw);

// The same job at another layout: the samples of a step, the model, the training and the precision are kept.
EngineConfig DrawOtherLayout(Draw& draw, const EngineConfig& job);

// The same job, as plainly as it can be trained: on one rank, everything kept and nothing cut.
EngineConfig OnOneRank(EngineConfig job);

// The same layout but for the pipeline.
EngineConfig WithoutPipeline(EngineConfig job);

// "data 2 x tensor 1 x pipeline 2 x 3 chunks, cuts 1 3 4 6 7, ..."
std::string Describe(const EngineConfig& job);

// By name, whether the job has it; the same names for every job.
std::vector<std::pair<std::string, bool>> FeaturesOf(const EngineConfig& job);

// Draws that were refused since the program began, by the field that the first problem named.
std::vector<std::pair<std::string, int64_t>> RefusedDraws();

}  // namespace muster
