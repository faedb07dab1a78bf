#include "client/plan_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/output.h"
#include "common/base/format_bytes.h"

namespace muster {
namespace {

constexpr int kBarWidth = 20;
constexpr size_t kFieldWidth = 22;

std::string LayoutLine(const v1::PlanLayout& layout) {
  std::vector<std::string> cuts;
  const std::pair<const char*, int64_t> sizes[] = {
      {"data", layout.data()}, {"tensor", layout.tensor()}, {"pipeline", layout.pipeline()}};
  for (const auto& [name, size] : sizes) {
    if (size > 1) cuts.push_back(absl::StrCat(name, " ", size));
  }
  if (layout.interleave() > 1) cuts.push_back(absl::StrCat(layout.interleave(), " chunks"));
  const int64_t ranks = layout.data() * layout.tensor() * layout.pipeline();
  std::string line = absl::StrCat(ranks, ranks == 1 ? " rank" : " ranks");
  if (!cuts.empty()) absl::StrAppend(&line, ", ", absl::StrJoin(cuts, " x "));
  absl::StrAppend(&line, ", micro-batch ", layout.micro_batch(), " x ", layout.accumulation_steps(), " accumulation");
  if (layout.data() > 1) absl::StrAppend(&line, " x ", layout.data(), " replicas");
  absl::StrAppend(&line, " = ", layout.data() * layout.micro_batch() * layout.accumulation_steps(), ", ",
                  layout.precision(), layout.recompute() == "none" ? ", no recompute" : ", recompute ");
  if (layout.recompute() != "none") line += layout.recompute();
  if (layout.optimizer_sharding()) line += ", optimizer state sharded";
  return line;
}

// Field and message side by side, the suggestion's lines below the message.
void AddProblem(std::string& text, const v1::PlanProblem& problem) {
  const std::string indent(kFieldWidth + 4, ' ');
  absl::StrAppendFormat(&text, "  %-*s  %s\n", kFieldWidth, problem.field(), problem.message());
  if (problem.suggestion().empty()) return;
  for (absl::string_view line : absl::StrSplit(problem.suggestion(), '\n')) absl::StrAppend(&text, indent, line, "\n");
}

std::string FlopsText(const v1::Plan& plan) {
  const double flops = plan.model_flops_per_token();
  const bool giga = flops >= 1e9;
  return absl::StrFormat("%.3g %s/token (%s)", flops / (giga ? 1e9 : 1e6), giga ? "GFLOP" : "MFLOP",
                         plan.flops_convention());
}

std::string CategoriesLine(const v1::MemoryByCategory& memory) {
  const std::pair<const char*, int64_t> parts[] = {{"parameters", memory.parameters()},
                                                   {"gradients", memory.gradients()},
                                                   {"optimizer", memory.optimizer_state()},
                                                   {"activations", memory.activations()},
                                                   {"logits", memory.logits()},
                                                   {"communication", memory.communication()},
                                                   {"workspace", memory.workspace()},
                                                   {"staging", memory.staging()}};
  std::vector<std::string> shown;
  for (const auto& [name, bytes] : parts) {
    if (bytes > 0) shown.push_back(absl::StrCat(name, " ", FormatBytes(bytes)));
  }
  return absl::StrJoin(shown, "  ");
}

bool SameMemory(const v1::PlanRank& a, const v1::PlanRank& b) {
  return a.stage() == b.stage() && a.total_bytes() == b.total_bytes() && a.arena_bytes() == b.arena_bytes() &&
         a.limit_bytes() == b.limit_bytes();
}

void AddRanks(std::string& text, const v1::Plan& plan, const Palette& palette) {
  const std::string indent(14, ' ');
  for (int first = 0; first < plan.ranks_size();) {
    const v1::PlanRank& rank = plan.ranks(first);
    int last = first;
    while (last + 1 < plan.ranks_size() && SameMemory(rank, plan.ranks(last + 1))) ++last;
    const std::string ranks =
        last == first ? absl::StrCat(rank.rank()) : absl::StrCat(rank.rank(), "-", plan.ranks(last).rank());
    absl::StrAppendFormat(&text, "rank   %-6s ", ranks);
    if (rank.limit_bytes() > 0) {
      const double fraction = static_cast<double>(rank.total_bytes()) / static_cast<double>(rank.limit_bytes());
      absl::StrAppend(&text, palette.Paint(fraction > 1 ? Colour::kRed : Colour::kGreen, Bar(fraction, kBarWidth)), " ",
                      FormatBytes(rank.total_bytes()), " of ", FormatBytes(rank.limit_bytes()));
      if (fraction > 1) absl::StrAppend(&text, ", over by ", FormatBytes(rank.total_bytes() - rank.limit_bytes()));
    } else {
      absl::StrAppend(&text, FormatBytes(rank.total_bytes()));
    }
    absl::StrAppend(&text, "   stage ", rank.stage(), "\n", indent, CategoriesLine(rank.memory()), "\n", indent,
                    "arena ", FormatBytes(rank.arena_bytes()), ", lower bound ",
                    FormatBytes(rank.arena_lower_bound_bytes()), "; outside it ", FormatBytes(rank.outside_bytes()));
    text += "\n";
    first = last + 1;
  }
  if (plan.ranks_size() == 0) return;
  absl::StrAppend(
      &text, "\nTensors that are never live together share memory: the parts may add up to more than the arena.\n");
  if (const std::string& source = plan.ranks(0).outside_source(); !source.empty()) {
    absl::StrAppend(&text, "Outside the arena: ", source, ".\n");
  }
}

void AddStages(std::string& text, const v1::Plan& plan) {
  if (plan.stages_size() < 2) return;
  for (int i = 0; i < plan.stages_size(); ++i) {
    const v1::PlanStage& stage = plan.stages(i);
    if (plan.layout().interleave() > 1) {
      const std::string number = absl::StrCat(i % plan.layout().pipeline(), " chunk ", i / plan.layout().pipeline());
      absl::StrAppendFormat(&text, "stage  %-11s ", number);
    } else {
      absl::StrAppendFormat(&text, "stage  %-6d ", i);
    }
    absl::StrAppend(&text, stage.units().empty() ? "" : stage.units(0), " .. ",
                    stage.units().empty() ? "" : stage.units(stage.units_size() - 1), "  ",
                    FormatCount(stage.parameters()), " parameters");
    if (i < plan.pipeline().in_flight_size()) {
      absl::StrAppend(&text, ", ", plan.pipeline().in_flight(i),
                      plan.pipeline().in_flight(i) == 1 ? " micro-batch in flight" : " micro-batches in flight");
    }
    text += "\n";
  }
  absl::StrAppendFormat(&text, "bubble        %.1f%% of the step (%.1f%% over ideal time)\n",
                        100 * plan.pipeline().bubble_of_total(), 100 * plan.pipeline().bubble_of_ideal());
}

}  // namespace

std::string PlanText(const std::string& name, const v1::Plan& plan, const Palette& palette) {
  std::string text;
  if (!plan.feasible()) {
    const int count = plan.problems_size();
    absl::StrAppend(&text, palette.Paint(Colour::kBold, name), " does not fit together: ", count,
                    count == 1 ? " problem\n\n" : " problems\n\n");
    for (const v1::PlanProblem& problem : plan.problems()) AddProblem(text, problem);
    if (plan.ranks_size() > 0) {
      text += "\n";
      AddRanks(text, plan, palette);
    }
    return absl::StrCat(text, "\nNothing was changed.\n");
  }
  absl::StrAppend(&text, palette.Paint(Colour::kBold, name), " fits: ", LayoutLine(plan.layout()), "\n",
                  FormatCount(plan.parameters()), " parameters   ", FlopsText(plan), "\n\n");
  AddRanks(text, plan, palette);
  if (plan.stages_size() > 1) text += "\n";
  AddStages(text, plan);
  return text;
}

}  // namespace muster
