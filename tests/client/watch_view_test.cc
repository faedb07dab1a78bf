#include "client/watch_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "client/output.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::WatchJobResponse RunningJob() {
  v1::WatchJobResponse response;
  v1::Job& job = *response.mutable_job();
  job.set_id("job-1");
  job.mutable_spec()->set_name("quickstart");
  job.mutable_spec()->mutable_parallelism()->set_data(2);
  job.mutable_spec()->mutable_parallelism()->set_pipeline(2);
  job.mutable_spec()->mutable_resources()->set_ranks(4);
  job.set_state(v1::RUNNING);
  job.set_attempt(1);
  job.add_placements()->set_worker("worker-0");
  job.mutable_progress()->set_step(212);
  job.mutable_progress()->set_steps(400);
  job.mutable_progress()->set_loss(2.1144);
  job.mutable_progress()->set_tokens_per_second(8412);
  job.mutable_progress()->mutable_remaining()->set_seconds(64);
  job.mutable_progress()->mutable_phases()->set_forward(31);
  job.mutable_progress()->mutable_phases()->set_backward(69);
  v1::RankStatus& rank = *job.add_ranks();
  rank.set_arena_bytes(61'200'000);
  rank.mutable_planned()->set_parameters(5);
  rank.mutable_used()->set_parameters(5);
  return response;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(WatchViewTest, TheBlockShowsStateStepLossTimeAndMemory) {
  WatchView view(Palette(false), 120);
  view.Update(RunningJob());
  const std::string block = Joined(view.Block());
  EXPECT_THAT(block, HasSubstr("quickstart  job-1  attempt 1  RUNNING on worker-0 (4 ranks: data 2 x pipeline 2)"));
  EXPECT_THAT(block, HasSubstr("step  212/400 "));
  EXPECT_THAT(block, HasSubstr(" 53%   1 min 04 s left"));
  EXPECT_THAT(block, HasSubstr("loss  2.114"));
  EXPECT_THAT(block, HasSubstr("8,412 tokens/s"));
  EXPECT_THAT(block, HasSubstr("forward 31 backward 69"));
  EXPECT_THAT(block, HasSubstr("arena 58.4 MiB = plan"));
}

TEST(WatchViewTest, MemoryThatIsNotAsPlannedIsSaid) {
  v1::WatchJobResponse response = RunningJob();
  response.mutable_job()->mutable_ranks(0)->mutable_used()->set_parameters(6);
  WatchView view(Palette(false), 120);
  view.Update(response);
  EXPECT_THAT(Joined(view.Block()), HasSubstr("DIFFERS FROM PLAN"));
}

TEST(WatchViewTest, NoLineIsWiderThanTheTerminal) {
  WatchView view(Palette(true), 40);
  view.Update(RunningJob());
  std::vector<size_t> widths;
  for (const std::string& line : view.Block()) widths.push_back(DisplayWidth(line));
  EXPECT_THAT(widths, Each(::testing::Le(40u)));
}

TEST(WatchViewTest, EightyColumnsHoldEveryFigureWhole) {
  v1::WatchJobResponse response = RunningJob();
  v1::JobProgress& progress = *response.mutable_job()->mutable_progress();
  progress.add_validations()->set_loss(2.4485);
  progress.set_validation_loss(2.4485);
  progress.set_gradient_norm(0.3719);
  for (auto set : {&v1::PhaseSeconds::set_comm_exposed, &v1::PhaseSeconds::set_bubble,
                   &v1::PhaseSeconds::set_checkpoint, &v1::PhaseSeconds::set_data_wait}) {
    (progress.mutable_phases()->*set)(25);
  }
  WatchView view(Palette(false), 80);
  for (int step = 1; step <= 212; ++step) {
    progress.set_step(step);
    view.Update(response);
  }
  const std::string block = Joined(view.Block());
  EXPECT_THAT(block, HasSubstr("val 2.449   8,412 tokens/s   gradient norm 0.37\n"));
  EXPECT_THAT(block, HasSubstr("checkpoint 12 %\n"));
}

TEST(WatchViewTest, EachEventIsShownOnce) {
  v1::WatchJobResponse response = RunningJob();
  v1::Event& event = *response.add_events();
  event.set_sequence(7);
  event.set_message("rank 2 killed by signal 9 on worker-0");
  WatchView view(Palette(false), 120);
  EXPECT_THAT(view.Update(response), ElementsAre(HasSubstr("rank 2 killed by signal 9")));
  EXPECT_THAT(view.Update(response), IsEmpty());
}

TEST(WatchViewTest, PlainOutputIsAFewLinesAndNotOneAStep) {
  WatchView view(Palette(false), 120);
  int lines = 0;
  for (int step = 1; step <= 400; ++step) {
    v1::WatchJobResponse response = RunningJob();
    response.mutable_job()->mutable_progress()->set_step(step);
    view.Update(response);
    if (!view.PlainLine().empty()) ++lines;
  }
  EXPECT_GE(lines, 20);
  EXPECT_LE(lines, 22);
}

}  // namespace
}  // namespace muster
