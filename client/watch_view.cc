#include "client/watch_view.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/memory_total.h"
#include "client/output.h"
#include "client/session.h"
#include "common/base/format_bytes.h"
#include "common/base/format_seconds.h"
#include "common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr int kBarWidth = 30;
constexpr int kSparklineWidth = 20;  // half of it where the terminal is narrow
constexpr int kNarrowColumns = 100;
constexpr int kMemoryBarWidth = 10;
constexpr int kRanksShown = 8;

}  // namespace

Colour StateColour(v1::JobState state) {
  switch (state) {
    case v1::RUNNING:
    case v1::COMPLETED:
      return Colour::kGreen;
    case v1::FAILED:
      return Colour::kRed;
    case v1::CANCELLED:
      return Colour::kDim;
    default:
      return Colour::kYellow;
  }
}

std::string LayoutText(const v1::Job& job) {
  const v1::JobSpec& spec = job.has_resolved_spec() ? job.resolved_spec() : job.spec();
  std::vector<std::string> parts;
  const auto add = [&parts](const char* name, int64_t size) {
    if (size > 1) parts.push_back(absl::StrCat(name, " ", size));
  };
  add("data", spec.parallelism().data());
  add("tensor", spec.parallelism().tensor());
  add("pipeline", spec.parallelism().pipeline());
  const int64_t ranks = spec.resources().ranks();
  const std::string count = absl::StrCat(ranks, ranks == 1 ? " rank" : " ranks");
  return parts.empty() ? count : absl::StrCat(count, ": ", absl::StrJoin(parts, " x "));
}

std::string EventLine(const v1::Event& event, const Palette& palette) {
  const Colour colour = event.severity() == v1::ERROR     ? Colour::kRed
                        : event.severity() == v1::WARNING ? Colour::kYellow
                                                          : Colour::kNone;
  return absl::StrCat(absl::FormatTime("%H:%M:%S", FromProto(event.time()), absl::LocalTimeZone()), "  ",
                      palette.Paint(colour, event.message()));
}

std::vector<std::string> WatchView::Update(const v1::WatchJobResponse& response) {
  job_ = response.job();
  const v1::JobProgress& progress = job_.progress();
  if (progress.step() < loss_step_) {
    // Steps are trained again after a recovery: their losses are the same, so the line goes back with them.
    losses_.resize(std::min(losses_.size(), static_cast<size_t>(progress.step())));
  }
  if (progress.step() != loss_step_ && progress.step() > 0) losses_.push_back(progress.loss());
  loss_step_ = progress.step();
  std::vector<std::string> lines;
  for (const v1::Event& event : response.events()) {
    if (event.sequence() <= last_event_) continue;
    last_event_ = event.sequence();
    lines.push_back(EventLine(event, palette_));
  }
  return lines;
}

std::string WatchView::HeadLine() const {
  std::set<std::string> workers;
  for (const auto& placement : job_.placements()) workers.insert(placement.worker());
  std::string line = absl::StrCat(palette_.Paint(Colour::kBold, job_.spec().name()), "  ", job_.id(), "  ");
  if (job_.attempt() > 0) absl::StrAppend(&line, "attempt ", job_.attempt(), "  ");
  absl::StrAppend(&line, palette_.Paint(StateColour(job_.state()), v1::JobState_Name(job_.state())));
  if (!workers.empty() && !HasEnded(job_.state())) absl::StrAppend(&line, " on ", absl::StrJoin(workers, ", "));
  absl::StrAppend(&line, " (", LayoutText(job_), ")");
  if (job_.state() == v1::QUEUED && job_.queue_status().position() > 0) {
    absl::StrAppend(&line, "  position ", job_.queue_status().position(), " of ", job_.queue_status().length(), ": ",
                    job_.queue_status().reason());
  } else if (!job_.state_reason().empty() &&
             (job_.state() != v1::RUNNING || job_.state_reason_code() == "WORKER_LOST")) {
    absl::StrAppend(&line, "  ", job_.state_reason());
  }
  return line;
}

std::string WatchView::StepLine() const {
  const v1::JobProgress& progress = job_.progress();
  const double fraction =
      progress.steps() > 0 ? static_cast<double>(progress.step()) / static_cast<double>(progress.steps()) : 0;
  std::string line = absl::StrFormat("step  %d/%d %s %3.0f%%", progress.step(), progress.steps(),
                                     Bar(fraction, kBarWidth), std::floor(fraction * 100));
  if (job_.state() == v1::RUNNING && progress.has_remaining()) {
    absl::StrAppend(&line, "   ", FormatSeconds(absl::ToDoubleSeconds(FromProto(progress.remaining()))), " left");
  }
  return line;
}

std::string WatchView::LossLine() const {
  const v1::JobProgress& progress = job_.progress();
  std::string line =
      absl::StrFormat("loss  %.3f  %s", progress.loss(),
                      Sparkline(losses_, width_ < kNarrowColumns ? kSparklineWidth / 2 : kSparklineWidth));
  if (progress.validations_size() > 0) {
    absl::StrAppendFormat(&line, "  val %.3f", progress.validation_loss());
    if (width_ >= kNarrowColumns) absl::StrAppendFormat(&line, " (ppl %.2f)", std::exp(progress.validation_loss()));
  }
  absl::StrAppendFormat(&line, "   %s tokens/s   gradient norm %.2f", FormatRate(progress.tokens_per_second()),
                        progress.gradient_norm());
  return line;
}

std::string WatchView::TimeLine() const {
  const v1::PhaseSeconds& phases = job_.progress().phases();
  const std::pair<const char*, double> parts[] = {
      {"forward", phases.forward()},       {"backward", phases.backward()},     {"comm", phases.comm_exposed()},
      {"bubble", phases.bubble()},         {"data", phases.data_wait()},        {"optimizer", phases.optimizer()},
      {"validation", phases.validation()}, {"checkpoint", phases.checkpoint()}, {"other", phases.other()}};
  double total = 0;
  for (const auto& part : parts) total += part.second;
  if (total <= 0) return "";
  std::string line = "time ";
  for (const auto& part : parts) {
    // What rounds to nothing is left out: the line is for what takes time.
    const double percent = 100 * part.second / total;
    if (percent >= 0.5) absl::StrAppendFormat(&line, " %s %.0f", part.first, percent);
  }
  return absl::StrCat(line, " %");
}

std::vector<std::string> WatchView::MemoryLines() const {
  std::vector<std::string> lines;
  for (const v1::RankStatus& rank : job_.ranks()) {
    if (rank.arena_bytes() == 0) continue;
    if (static_cast<int>(lines.size()) == kRanksShown) {
      lines.push_back(absl::StrCat("      and ", job_.ranks_size() - kRanksShown, " more ranks"));
      break;
    }
    const double limit = static_cast<double>(rank.limit_bytes());
    const double resident = static_cast<double>(rank.resident_bytes());
    std::string line = absl::StrCat(lines.empty() ? "mem   " : "      ", "rank ", rank.rank(), " ");
    if (limit > 0) {
      absl::StrAppend(&line, Bar(resident / limit, kMemoryBarWidth), " ", FormatBytes(rank.resident_bytes()), " of ",
                      FormatBytes(rank.limit_bytes()), " at the most");
    } else {
      absl::StrAppend(&line, FormatBytes(rank.resident_bytes()), " at the most");
    }
    const bool as_planned = Total(rank.planned()) == Total(rank.used());
    absl::StrAppend(&line, "   arena ", FormatBytes(rank.arena_bytes()), as_planned ? " = plan" : " DIFFERS FROM PLAN");
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> WatchView::Block() const {
  std::vector<std::string> lines = {HeadLine()};
  if (job_.progress().step() > 0) {
    lines.push_back(StepLine());
    lines.push_back(LossLine());
    if (std::string time = TimeLine(); !time.empty()) lines.push_back(std::move(time));
  }
  for (std::string& line : MemoryLines()) lines.push_back(std::move(line));
  // A line that wraps would break the redrawing: cut it at a character.
  for (std::string& line : lines) {
    if (DisplayWidth(line) <= static_cast<size_t>(width_)) continue;
    while (DisplayWidth(line) > static_cast<size_t>(width_)) {
      line.pop_back();
      while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xC0) == 0x80) line.pop_back();
    }
    if (absl::StrContains(line, '\033')) line += "\033[0m";
  }
  return lines;
}

std::string WatchView::PlainLine() {
  const v1::JobProgress& progress = job_.progress();
  // A line for each state, and about twenty over the whole of the training.
  const int64_t interval = std::max<int64_t>(progress.steps() / 20, 1);
  const int64_t shown_step = HasEnded(job_.state()) ? progress.step() : progress.step() / interval * interval;
  const std::string key = absl::StrCat(job_.state(), "/", job_.attempt(), "/", shown_step);
  if (key == last_plain_) return "";
  last_plain_ = key;
  std::string line = absl::StrCat(job_.id(), " attempt ", job_.attempt(), " ", v1::JobState_Name(job_.state()));
  if (progress.step() > 0) {
    absl::StrAppendFormat(&line, " step %d/%d loss %.4f", progress.step(), progress.steps(), progress.loss());
    if (progress.validations_size() > 0) absl::StrAppendFormat(&line, " val %.4f", progress.validation_loss());
    absl::StrAppend(&line, " ", FormatRate(progress.tokens_per_second()), " tokens/s");
    if (progress.has_remaining() && job_.state() == v1::RUNNING) {
      absl::StrAppend(&line, " ", FormatSeconds(absl::ToDoubleSeconds(FromProto(progress.remaining()))), " left");
    }
  } else if (!job_.state_reason().empty()) {
    absl::StrAppend(&line, ": ", job_.state_reason());
  }
  return line;
}

}  // namespace muster
