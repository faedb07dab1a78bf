#include "common/plan/layout_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

using Problems = std::vector<Problem>;

void CheckRange(const char* code, const char* field, int64_t value, int64_t largest, Problems* problems) {
  if (value >= 1 && value <= largest) return;
  problems->push_back({code, field, absl::StrCat(value, " is not between 1 and ", largest), ""});
}

// The numbers that are nearest to `wanted`, at most eight, ascending: "1, 2, 4, 8".
std::string Nearest(std::vector<int64_t> numbers, int64_t wanted) {
  const size_t shown = 8;
  while (numbers.size() > shown) {
    const bool drop_first = wanted - numbers.front() > numbers.back() - wanted;
    numbers.erase(drop_first ? numbers.begin() : numbers.end() - 1);
  }
  return absl::StrJoin(numbers, ", ");
}

std::string DivisorsNear(int64_t number, int64_t wanted) { return Nearest(Divisors(number), wanted); }

std::string Sizes(int64_t data, int64_t tensor, int64_t pipeline) {
  return absl::StrCat("data ", data, " x tensor ", tensor, " x pipeline ", pipeline);
}

// Each rank has whole heads, and whole key and value heads or a copy of one of them.
bool TensorDivides(const ModelShape& shape, int64_t tensor) {
  const bool kv_heads = shape.kv_heads % tensor == 0 || tensor % shape.kv_heads == 0;
  return shape.heads % tensor == 0 && shape.ffn % tensor == 0 && kv_heads;
}

// Layouts of exactly `ranks` ranks that keep two of the three sizes and divide the batch.
std::string ConsistentLayouts(const LayoutRequest& request) {
  const Layout& layout = request.layout;
  const std::pair<int64_t, int64_t> kept[] = {
      {layout.tensor, layout.pipeline}, {1, layout.pipeline}, {layout.tensor, 1}, {1, 1}};
  std::vector<std::string> found;
  const auto add = [&](int64_t data, int64_t tensor, int64_t pipeline) {
    if (data * tensor * pipeline != request.ranks || pipeline * layout.interleave > request.shape.units()) return;
    if (!TensorDivides(request.shape, tensor)) return;
    if (request.global_batch >= 1 && request.global_batch % data != 0) return;
    std::string sizes = Sizes(data, tensor, pipeline);
    if (std::find(found.begin(), found.end(), sizes) == found.end()) found.push_back(std::move(sizes));
  };
  if (request.ranks % (layout.data * layout.tensor) == 0) {
    add(layout.data, layout.tensor, request.ranks / (layout.data * layout.tensor));
  }
  for (const auto& sizes : kept) {
    if (request.ranks % (sizes.first * sizes.second) == 0) {
      add(request.ranks / (sizes.first * sizes.second), sizes.first, sizes.second);
    }
  }
  if (found.empty()) return "";
  return absl::StrCat("consistent with ", request.ranks, ": ", absl::StrJoin(found, ", "));
}

void CheckRanks(const LayoutRequest& request, Problems* problems) {
  const Layout& layout = request.layout;
  if (layout.data == 0) {
    if (request.ranks % (layout.tensor * layout.pipeline) == 0) return;
    LayoutRequest one_replica = request;
    one_replica.layout.data = 1;
    problems->push_back({"LAYOUT_NOT_EQUAL_TO_RANKS", "parallelism",
                         absl::StrCat("resources.ranks is ", request.ranks, ", not a multiple of tensor ",
                                      layout.tensor, " x pipeline ", layout.pipeline),
                         ConsistentLayouts(one_replica)});
  } else if (layout.ranks() != request.ranks) {
    problems->push_back({"LAYOUT_NOT_EQUAL_TO_RANKS", "parallelism",
                         absl::StrCat(Sizes(layout.data, layout.tensor, layout.pipeline), " = ", layout.ranks(),
                                      " ranks, resources.ranks is ", request.ranks),
                         ConsistentLayouts(request)});
  }
}

// Replicas, as far as they are known: 0 when they are not.
int64_t ReplicasOf(const LayoutRequest& request) {
  const Layout& layout = request.layout;
  if (layout.data > 0) return layout.data;
  const int64_t rest = layout.tensor * layout.pipeline;
  return request.ranks % rest == 0 ? request.ranks / rest : 0;
}

void CheckBatch(const LayoutRequest& request, Problems* problems) {
  const int64_t batch = request.global_batch;
  const int64_t data = ReplicasOf(request);
  if (data == 0) return;
  if (batch % data != 0) {
    const int64_t below = batch / data * data;
    problems->push_back({"GLOBAL_BATCH_NOT_DIVISIBLE", "training.global_batch",
                         absl::StrCat(batch, " sequences are not divisible by ", data, " replicas"),
                         absl::StrCat(below > 0 ? absl::StrCat("nearest batches: ", below, ", ", below + data)
                                                : absl::StrCat("smallest batch: ", data),
                                      "; numbers of replicas that divide ", batch, ": ", DivisorsNear(batch, data))});
    return;
  }
  const int64_t replica_batch = batch / data;
  const int64_t micro_batch = request.layout.micro_batch;
  if (micro_batch == 0 || replica_batch % micro_batch == 0) return;
  LayoutRequest known = request;
  known.layout.data = data;
  problems->push_back({"MICRO_BATCH_NOT_A_DIVISOR", "training.micro_batch",
                       absl::StrCat(micro_batch, " does not divide the per-replica batch of ", replica_batch, " (",
                                    batch, " over ", data, data == 1 ? " replica)" : " replicas)"),
                       absl::StrCat("divisors: ", Nearest(LegalMicroBatches(known), micro_batch))});
}

// The interleaved schedule takes micro-batches in groups of `pipeline`.
bool Groups(const Layout& layout, int64_t micro_batches) {
  return layout.interleave == 1 || micro_batches % layout.pipeline == 0;
}

void CheckInterleave(const LayoutRequest& request, Problems* problems) {
  const Layout& layout = request.layout;
  if (layout.interleave == 1) return;
  const auto refuse = [problems](std::string message, std::string suggestion) {
    problems->push_back(
        {"INTERLEAVE_DOES_NOT_FIT", "parallelism.interleave", std::move(message), std::move(suggestion)});
  };
  if (layout.pipeline == 1) {
    refuse(absl::StrCat(layout.interleave,
                        " chunks on each rank, but parallelism.pipeline is 1: there is no bubble to fill"),
           "leave parallelism.interleave and parallelism.schedule out, or set parallelism.pipeline to 2 or more");
    return;
  }
  const int64_t data = ReplicasOf(request);
  if (data == 0 || request.global_batch % data != 0) return;
  LayoutRequest known = request;
  known.layout.data = data;
  const int64_t replica_batch = request.global_batch / data;
  if (layout.micro_batch > 0 && replica_batch % layout.micro_batch != 0) return;
  const int64_t micro_batches = layout.micro_batch > 0 ? replica_batch / layout.micro_batch : replica_batch;
  if (Groups(layout, micro_batches)) return;
  const std::vector<int64_t> legal = LegalMicroBatches(known);
  const int64_t group = data * layout.pipeline;
  refuse(absl::StrCat("the interleaved schedule takes micro-batches in groups of pipeline ", layout.pipeline, ", and ",
                      micro_batches, " of a replica are not a multiple of it"),
         legal.empty() ? absl::StrCat("make training.global_batch a multiple of data x pipeline = ", group,
                                      ", or use schedule 1f1b")
                       : absl::StrCat("training.micro_batch that gives one: ", Nearest(legal, layout.micro_batch),
                                      "; or use schedule 1f1b"));
}

void CheckTensor(const LayoutRequest& request, Problems* problems) {
  const ModelShape& shape = request.shape;
  const Layout& layout = request.layout;
  if (!TensorDivides(shape, layout.tensor)) {
    std::vector<int64_t> dividing = Divisors(shape.heads);
    dividing.erase(
        std::remove_if(dividing.begin(), dividing.end(), [&](int64_t tensor) { return !TensorDivides(shape, tensor); }),
        dividing.end());
    problems->push_back({"HEADS_NOT_DIVISIBLE_BY_TENSOR", "parallelism.tensor",
                         absl::StrCat(layout.tensor, " does not divide ", shape.heads, " heads, ", shape.kv_heads,
                                      " kv_heads (or is not divided by them) and ffn ", shape.ffn),
                         absl::StrCat("sizes that do: ", Nearest(dividing, layout.tensor))});
    return;
  }
  const int64_t data = ReplicasOf(request);
  if (data == 0 || request.global_batch % data != 0) return;
  LayoutRequest known = request;
  known.layout.data = data;
  known.layout.interleave = 1;
  const std::vector<int64_t> legal = LegalMicroBatches(known);
  const int64_t micro_batch = layout.micro_batch;
  if (micro_batch == 0 ? !legal.empty() : micro_batch * layout.sequence_length % layout.tensor == 0) return;
  const int64_t shown = std::max<int64_t>(micro_batch, 1);
  problems->push_back(
      {"ROWS_NOT_DIVISIBLE_BY_TENSOR", "parallelism.tensor",
       absl::StrCat("a micro-batch of ", shown, " x ", layout.sequence_length, " = ", shown * layout.sequence_length,
                    " tokens cannot be shared evenly by ", layout.tensor, " ranks"),
       legal.empty() ? absl::StrCat("make training.sequence_length a multiple of ", layout.tensor)
                     : absl::StrCat("training.micro_batch that can: ", Nearest(legal, shown))});
}

void CheckSizes(const LayoutRequest& request, Problems* problems) {
  const ModelShape& shape = request.shape;
  const Layout& layout = request.layout;
  if (layout.virtual_stages() > shape.units()) {
    const std::string stages = layout.interleave == 1
                                   ? absl::StrCat(layout.pipeline, " stages")
                                   : absl::StrCat(layout.pipeline, " stages x ", layout.interleave,
                                                  " chunks = ", layout.virtual_stages(), " runs of units");
    problems->push_back({"MORE_STAGES_THAN_UNITS",
                         layout.interleave == 1 ? "parallelism.pipeline" : "parallelism.interleave",
                         absl::StrCat(stages, ", but ", shape.layers, " layers are only ", shape.units(),
                                      " units (embedding, attention and feed-forward of each layer, head)"),
                         absl::StrCat("at most ", shape.units(), layout.interleave == 1 ? "" : " in all")});
  }
  if (layout.sequence_length > shape.context) {
    problems->push_back({"SEQUENCE_LONGER_THAN_CONTEXT", "training.sequence_length",
                         absl::StrCat(layout.sequence_length, " tokens, the model's context is ", shape.context),
                         absl::StrCat("at most ", shape.context, ", or raise model.context")});
  }
}

}  // namespace

std::vector<int64_t> Divisors(int64_t number) {
  std::vector<int64_t> small;
  std::vector<int64_t> large;
  for (int64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    small.push_back(i);
    if (i * i != number) large.push_back(number / i);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::vector<Problem> CheckModelShape(const ModelShape& shape) {
  Problems problems;
  const char* code = "MODEL_OUT_OF_RANGE";
  CheckRange(code, "model.layers", shape.layers, kLargestLayers, &problems);
  CheckRange(code, "model.hidden", shape.hidden, kLargestWidth, &problems);
  CheckRange(code, "model.heads", shape.heads, kLargestWidth, &problems);
  CheckRange(code, "model.kv_heads", shape.kv_heads, kLargestWidth, &problems);
  CheckRange(code, "model.ffn", shape.ffn, kLargestFfn, &problems);
  CheckRange(code, "model.vocab", shape.vocab, kLargestVocab, &problems);
  CheckRange(code, "model.context", shape.context, kLargestContext, &problems);
  if (!problems.empty()) return problems;
  if (shape.hidden % shape.heads != 0) {
    problems.push_back({"HEADS_DO_NOT_DIVIDE_HIDDEN", "model.heads",
                        absl::StrCat(shape.heads, " heads do not divide hidden ", shape.hidden),
                        absl::StrCat("divisors: ", DivisorsNear(shape.hidden, shape.heads))});
  }
  if (shape.heads % shape.kv_heads != 0) {
    problems.push_back({"KV_HEADS_DO_NOT_DIVIDE_HEADS", "model.kv_heads",
                        absl::StrCat(shape.kv_heads, " kv_heads do not divide ", shape.heads, " heads"),
                        absl::StrCat("divisors: ", DivisorsNear(shape.heads, shape.kv_heads))});
  }
  if (problems.empty() && shape.rotary() && shape.head_dim() % 2 != 0) {
    problems.push_back({"HEAD_DIM_IS_ODD", "model.heads",
                        absl::StrCat("rotary positions turn components in pairs, and hidden ", shape.hidden, " over ",
                                     shape.heads, " heads is ", shape.head_dim(), ", an odd number"),
                        ""});
  }
  return problems;
}

std::vector<Problem> CheckLayout(const LayoutRequest& request) {
  Problems problems = CheckModelShape(request.shape);
  if (problems.empty() && request.shape.family == ModelFamily::kGpt2 && request.shape.kv_heads != request.shape.heads) {
    problems.push_back({"NOT_SUPPORTED_YET", "model.kv_heads",
                        "grouped query attention in the gpt2 family is not supported yet by this version",
                        absl::StrCat("use ", request.shape.heads, " or leave it out")});
  }
  const Layout& layout = request.layout;
  const size_t model_problems = problems.size();
  const char* code = "LAYOUT_OUT_OF_RANGE";
  if (layout.data != 0) CheckRange(code, "parallelism.data", layout.data, kLargestRanks, &problems);
  CheckRange(code, "parallelism.tensor", layout.tensor, kLargestRanks, &problems);
  CheckRange(code, "parallelism.pipeline", layout.pipeline, kLargestPipeline, &problems);
  CheckRange(code, "parallelism.interleave", layout.interleave, kLargestInterleave, &problems);
  CheckRange(code, "resources.ranks", request.ranks, kLargestRanks, &problems);
  CheckRange(code, "training.global_batch", request.global_batch, kLargestBatch, &problems);
  if (layout.micro_batch != 0) CheckRange(code, "training.micro_batch", layout.micro_batch, kLargestBatch, &problems);
  CheckRange(code, "training.sequence_length", layout.sequence_length, kLargestContext, &problems);
  if (problems.size() == model_problems) {
    CheckRanks(request, &problems);
    CheckBatch(request, &problems);
    CheckSizes(request, &problems);
    CheckInterleave(request, &problems);
    CheckTensor(request, &problems);
  }
  return problems;
}

std::vector<int64_t> LegalMicroBatches(const LayoutRequest& request) {
  const Layout& layout = request.layout;
  const int64_t replica_batch = request.global_batch / layout.data;
  std::vector<int64_t> legal;
  for (const int64_t micro_batch : Divisors(replica_batch)) {
    const bool shared = micro_batch * layout.sequence_length % layout.tensor == 0;
    if (shared && Groups(layout, replica_batch / micro_batch)) legal.push_back(micro_batch);
  }
  return legal;
}

std::vector<UnitRange> StagesFromCuts(const ModelShape& shape, const Layout& layout, const std::vector<int64_t>& cuts,
                                      std::vector<Problem>* problems) {
  std::vector<UnitRange> stages;
  int64_t first = 0;
  bool ascending = true;
  for (int64_t cut : cuts) {
    ascending = ascending && cut > first && cut < shape.units();
    stages.push_back({first, cut});
    first = cut;
  }
  stages.push_back({first, shape.units()});
  const int64_t wanted = layout.virtual_stages();
  if (ascending && static_cast<int64_t>(stages.size()) == wanted) return stages;
  const std::string into = layout.interleave > 1 ? absl::StrCat(layout.pipeline, " stages x ", layout.interleave,
                                                                " chunks = ", wanted, " runs")
                                                 : absl::StrCat(wanted, wanted == 1 ? " stage" : " stages");
  problems->push_back(
      {"CUTS_DO_NOT_FIT", "parallelism.cuts",
       absl::StrCat("[", absl::StrJoin(cuts, ", "), "] does not cut ", shape.units(), " units into ", into),
       absl::StrCat(wanted - 1, " ascending numbers from 1 to ", shape.units() - 1,
                    ", or leave it out for an even cut")});
  return {};
}

}  // namespace muster
