#include "client/job_view.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output.h"
#include "client/session.h"
#include "client/watch_view.h"
#include "common/base/format_bytes.h"
#include "common/base/format_seconds.h"
#include "common/rpc/proto_time.h"

namespace muster {
namespace {

using Align = Table::Align;

std::string Age(const google::protobuf::Timestamp& time, absl::Time now) {
  if (time.seconds() == 0) return "-";
  return FormatSeconds(std::max(0.0, absl::ToDoubleSeconds(now - FromProto(time))));
}

std::string LocalTime(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", FromProto(time), absl::LocalTimeZone());
}

std::string State(const v1::Job& job, const Palette& palette) {
  return palette.Paint(StateColour(job.state()), v1::JobState_Name(job.state()));
}

// A line of `describe`: a label of fixed width and what belongs to it.
void AddLine(std::string& text, absl::string_view label, absl::string_view value) {
  if (!value.empty()) absl::StrAppendFormat(&text, "%-13s%s\n", label, value);
}

void AddProgress(std::string& text, const v1::Job& job) {
  const v1::JobProgress& progress = job.progress();
  if (progress.step() == 0) return;
  AddLine(text, "Step", absl::StrCat(progress.step(), " of ", progress.steps()));
  AddLine(text, "Loss", absl::StrFormat("%.4f nats/token", progress.loss()));
  if (progress.validations_size() > 0) {
    AddLine(text, "Validation",
            absl::StrFormat("%.4f at step %d, perplexity %.2f (first %.4f, %.2f)", progress.validation_loss(),
                            progress.validation_step(), std::exp(progress.validation_loss()),
                            progress.first_validation_loss(), std::exp(progress.first_validation_loss())));
  }
  AddLine(text, "Throughput",
          absl::StrCat(FormatRate(progress.tokens_per_second()), " tokens/s, ", FormatCount(progress.tokens()),
                       " tokens trained on"));
}

std::string RanksTable(const v1::Job& job) {
  Table table({{"RANK", Align::kRight},
               {"WORKER"},
               {"DEVICE", Align::kRight},
               {"PID", Align::kRight},
               {"STATE"},
               {"STEP", Align::kRight},
               {"PLANNED ARENA", Align::kRight},
               {"USED ARENA", Align::kRight},
               {"PEAK RESIDENT", Align::kRight},
               {"LIMIT", Align::kRight}});
  for (const v1::RankStatus& rank : job.ranks()) {
    int64_t planned = 0;
    for (const v1::PlanRank& plan : job.plan().ranks()) {
      if (plan.rank() == rank.rank()) planned = plan.arena_bytes();
    }
    table.AddRow({absl::StrCat(rank.rank()), rank.worker(), absl::StrCat(rank.device()), absl::StrCat(rank.pid()),
                  rank.state(), absl::StrCat(rank.step()), FormatBytes(planned), FormatBytes(rank.arena_bytes()),
                  FormatBytes(rank.resident_bytes()), rank.limit_bytes() > 0 ? FormatBytes(rank.limit_bytes()) : "-"});
  }
  return table.ToString();
}

}  // namespace

std::string JobsTable(const v1::ListJobsResponse& jobs, absl::Time now, const Palette& palette) {
  if (jobs.jobs().empty()) return "No jobs. Submit one: muster submit FILE\n";
  Table table({{"ID"},
               {"NAME"},
               {"STATE"},
               {"ATTEMPT", Align::kRight},
               {"STEP", Align::kRight},
               {"LOSS", Align::kRight},
               {"TOKENS/S", Align::kRight},
               {"AGE", Align::kRight}});
  for (const v1::Job& job : jobs.jobs()) {
    const v1::JobProgress& progress = job.progress();
    const bool trained = progress.step() > 0;
    table.AddRow({job.id(), job.spec().name(), State(job, palette), absl::StrCat(job.attempt()),
                  absl::StrCat(progress.step(), "/", job.resolved_spec().training().steps()),
                  trained ? absl::StrFormat("%.3f", progress.loss()) : "-",
                  trained ? FormatRate(progress.tokens_per_second()) : "-", Age(job.submitted_at(), now)});
  }
  return table.ToString();
}

std::string WorkersTable(const v1::ListWorkersResponse& workers, absl::Time now, const Palette& palette) {
  if (workers.workers().empty()) return "No workers. Start muster-worker --coordinator HOST:PORT on each host\n";
  Table table({{"NAME"},
               {"STATE"},
               {"DEVICES", Align::kRight},
               {"FREE", Align::kRight},
               {"KIND"},
               {"MEMORY", Align::kRight},
               {"ADDRESS"},
               {"METRICS"},
               {"HEARTBEAT", Align::kRight}});
  for (const v1::Worker& worker : workers.workers()) {
    const auto& devices = worker.inventory().devices();
    const Colour colour = worker.state() == v1::READY         ? Colour::kGreen
                          : worker.state() == v1::UNREACHABLE ? Colour::kRed
                                                              : Colour::kYellow;
    table.AddRow({worker.name(), palette.Paint(colour, v1::WorkerState_Name(worker.state())),
                  absl::StrCat(devices.size()), absl::StrCat(devices.size() - worker.uses_size()),
                  devices.empty() ? "-" : devices[0].kind(),
                  devices.empty() ? "-" : absl::StrCat(FormatBytes(devices[0].memory_bytes()), " each"),
                  worker.inventory().address(), worker.inventory().metrics_address(),
                  absl::StrCat(Age(worker.last_heartbeat(), now), " ago")});
  }
  return table.ToString();
}

std::string JobDescription(const v1::Job& job, const v1::ListEventsResponse& events, absl::Time now,
                           const Palette& palette) {
  std::string text;
  AddLine(text, "Job", absl::StrCat(job.id(), "  ", job.spec().name()));
  std::string state = State(job, palette);
  if (job.queue_status().position() > 0) {
    absl::StrAppend(&state, ", position ", job.queue_status().position(), " of ", job.queue_status().length());
  }
  AddLine(text, "State", state);
  AddLine(text, job.state() == v1::QUEUED ? "Waits for" : "Reason",
          job.queue_status().position() > 0 ? job.queue_status().reason() : job.state_reason());
  AddLine(text, "Layout", LayoutText(job));
  if (job.has_forked_from()) {
    AddLine(text, "Fork", absl::StrCat("of ", job.forked_from().job_id(), " at step ", job.forked_from().step()));
  }
  AddLine(text, "Attempt",
          absl::StrCat(job.attempt(), ", ", job.restarts(), " of ", job.resolved_spec().policy().max_restarts(),
                       " restarts used"));
  AddLine(text, "Submitted", absl::StrCat(LocalTime(job.submitted_at()), " (", Age(job.submitted_at(), now), " ago)"));
  if (job.has_started_at()) AddLine(text, "Started", LocalTime(job.started_at()));
  if (job.has_ended_at()) AddLine(text, "Ended", LocalTime(job.ended_at()));
  AddProgress(text, job);
  if (job.has_last_checkpoint()) {
    AddLine(text, "Checkpoint",
            absl::StrCat("step ", job.last_checkpoint().step(), ", ", job.last_checkpoint().path(), ", ",
                         FormatBytes(job.last_checkpoint().bytes())));
  }
  if (job.has_last_recovery()) {
    AddLine(text, "Recovery",
            absl::StrCat("the last took ", FormatSeconds(absl::ToDoubleSeconds(FromProto(job.last_recovery())))));
  }
  if (job.ranks_size() > 0) absl::StrAppend(&text, "\n", RanksTable(job));
  if (events.events_size() > 0) text += "\nEvents\n";
  for (const v1::Event& event : events.events()) absl::StrAppend(&text, EventLine(event, palette), "\n");
  return text;
}

std::string JobSummary(const v1::Job& job, const Palette& palette) {
  const v1::JobProgress& progress = job.progress();
  std::string text = absl::StrCat(job.id(), " ", State(job, palette));
  if (job.has_started_at() && job.has_ended_at()) {
    absl::StrAppend(&text, " after ",
                    FormatSeconds(absl::ToDoubleSeconds(FromProto(job.ended_at()) - FromProto(job.started_at()))));
  }
  if (progress.step() > 0) {
    absl::StrAppendFormat(&text, ", step %d of %d, loss %.4f", progress.step(), progress.steps(), progress.loss());
  }
  if (progress.validations_size() > 0) {
    absl::StrAppendFormat(&text, ", validation %.4f -> %.4f (perplexity %.2f)", progress.first_validation_loss(),
                          progress.validation_loss(), std::exp(progress.validation_loss()));
  }
  if (job.state() != v1::COMPLETED && !job.state_reason().empty()) absl::StrAppend(&text, "\n", job.state_reason());
  return absl::StrCat(text, "\n");
}

}  // namespace muster
