// Whether a model and a layout fit together at all, before memory is counted. Everything that is wrong is reported at
// once, and nothing that was asked for is changed. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/layout.h"
#include "common/plan/model_shape.h"
#include "common/plan/problem.h"

namespace muster {

// What a job asks for. layout.data and layout.micro_batch may be 0: not chosen yet, what depends on them is not
// checked. layout.accumulation_steps is not read: it follows from the others.
struct LayoutRequest {
  ModelShape shape;
  Layout layout;
  int64_t ranks = 0;         // rank processes
  int64_t global_batch = 0;  // sequences of one optimizer step
};

// Ranges within which products of sizes stay far from overflow, and planning takes seconds at the most.
inline constexpr int64_t kLargestLayers = 1'000;
inline constexpr int64_t kLargestPipeline = 256;
inline constexpr int64_t kLargestInterleave = 64;        // chunks of the model on a rank
inline constexpr int64_t kLargestWidth = 1'000'000;      // hidden, heads
inline constexpr int64_t kLargestFfn = 10'000'000;       // feed-forward width
inline constexpr int64_t kLargestVocab = 100'000'000;    // tokens; their ids are i32
inline constexpr int64_t kLargestContext = 100'000'000;  // tokens
inline constexpr int64_t kLargestRanks = 32'768;
inline constexpr int64_t kLargestBatch = 1'000'000'000;  // sequences

// MODEL_OUT_OF_RANGE, HEADS_DO_NOT_DIVIDE_HIDDEN, KV_HEADS_DO_NOT_DIVIDE_HEADS, HEAD_DIM_IS_ODD.
std::vector<Problem> CheckModelShape(const ModelShape& shape);

// The model's problems, then LAYOUT_OUT_OF_RANGE, LAYOUT_NOT_EQUAL_TO_RANKS, GLOBAL_BATCH_NOT_DIVISIBLE,
// MICRO_BATCH_NOT_A_DIVISOR, MORE_STAGES_THAN_UNITS, INTERLEAVE_DOES_NOT_FIT, SEQUENCE_LONGER_THAN_CONTEXT,
// HEADS_NOT_DIVISIBLE_BY_TENSOR, ROWS_NOT_DIVISIBLE_BY_TENSOR, and NOT_SUPPORTED_YET for what this version does not
// train.
std::vector<Problem> CheckLayout(const LayoutRequest& request);

// The micro-batches with which `request`, whose data is chosen, can run: divisors of the per-replica batch whose number
// the interleaved schedule can group, and whose rows tensor ranks can share. Ascending.
std::vector<int64_t> LegalMicroBatches(const LayoutRequest& request);

// The virtual stages of the model between `cuts`, each the first unit of one after the first. Appends CUTS_DO_NOT_FIT.
std::vector<UnitRange> StagesFromCuts(const ModelShape& shape, const Layout& layout, const std::vector<int64_t>& cuts,
                                      std::vector<Problem>* problems);

// Ascending. REQUIRES: number >= 1.
std::vector<int64_t> Divisors(int64_t number);

}  // namespace muster
