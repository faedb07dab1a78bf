#include "worker/data/prefetching_loader.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Every token of sample i is i. Sample i costs `cost` on the clock; `bad_sample` cannot be read; every fourth last
// target is ignored.
class NumberedSource : public SampleSource {
 public:
  explicit NumberedSource(FakeClock* clock = nullptr, absl::Duration cost = absl::ZeroDuration(),
                          int64_t bad_sample = -1)
      : clock_(clock), cost_(cost), bad_sample_(bad_sample) {}

  int64_t sequence_length() const override { return 3; }

  absl::Status Sample(int64_t index, const SampleRows& row) const override {
    if (index == bad_sample_) return absl::DataLossError("sector 7 is bad");
    if (clock_ != nullptr) clock_->Advance(cost_);
    std::fill(row.tokens.begin(), row.tokens.end(), static_cast<int32_t>(index));
    std::fill(row.targets.begin(), row.targets.end(), static_cast<int32_t>(index + 1));
    std::fill(row.document_starts.begin(), row.document_starts.end(), static_cast<int32_t>(index % 3));
    if (index % 4 == 0) row.targets.back() = kIgnoredSampleTarget;
    absl::MutexLock lock(&mutex_);
    ++samples_;
    return absl::OkStatus();
  }

  void WaitForSamples(int64_t count) const {
    wanted_ = count;
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &NumberedSource::Enough));
  }

 private:
  bool Enough() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return samples_ >= wanted_; }

  FakeClock* clock_;
  absl::Duration cost_;
  int64_t bad_sample_;
  mutable absl::Mutex mutex_;
  mutable int64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int64_t wanted_ = 0;
};

PrefetchingLoaderOptions Options(int64_t replicas, int64_t replica) {
  PrefetchingLoaderOptions options;
  options.global_batch = 8;
  options.micro_batch = 2;
  options.replicas = replicas;
  options.replica = replica;
  return options;
}

// A loader with its memory.
struct Loaded {
  std::vector<int32_t> memory;
  std::unique_ptr<PrefetchingLoader> loader;
};

Loaded Start(const SampleSource& source, const Clock& clock, const PrefetchingLoaderOptions& options) {
  Loaded loaded;
  loaded.memory.resize(static_cast<size_t>(PrefetchingLoader::MemoryElements(options, source.sequence_length())));
  auto loader = PrefetchingLoader::Start(source, clock, options, absl::MakeSpan(loaded.memory));
  EXPECT_TRUE(loader.ok()) << loader.status();
  loaded.loader = *std::move(loader);
  return loaded;
}

// The samples of a batch, a row each.
std::vector<int32_t> SamplesOf(absl::Span<const int32_t> tokens) {
  std::vector<int32_t> samples;
  for (size_t row = 0; row < tokens.size(); row += 3) samples.push_back(tokens[row]);
  return samples;
}

TEST(PrefetchingLoader, GivesEachReplicaItsRunOfTheStep) {
  NumberedSource source;
  FakeClock clock;
  Loaded second = Start(source, clock, Options(2, 1));
  for (int32_t step = 0; step < 5; ++step) {
    const StepBatch batch = second.loader->Next().value();
    EXPECT_EQ(batch.step, step);
    EXPECT_EQ(batch.micro_batches, 2);
    const int32_t first = 8 * step + 4;
    EXPECT_THAT(SamplesOf(batch.micro_batch_tokens(0)), ElementsAre(first, first + 1));
    EXPECT_THAT(SamplesOf(batch.micro_batch_tokens(1)), ElementsAre(first + 2, first + 3));
    EXPECT_EQ(batch.micro_batch_targets(1)[0], first + 3);
    EXPECT_EQ(batch.counted_targets, 4 * 3 - 1);
  }
}

TEST(PrefetchingLoader, TheSetOfAStepDoesNotDependOnTheReplicas) {
  NumberedSource source;
  FakeClock clock;
  for (int64_t replicas : {1, 2, 4}) {
    std::vector<Loaded> loaded;
    for (int64_t d = 0; d < replicas; ++d) loaded.push_back(Start(source, clock, Options(replicas, d)));
    for (int32_t step = 0; step < 4; ++step) {
      std::vector<int32_t> all;
      int64_t counted = 0;
      for (Loaded& replica : loaded) {
        const StepBatch batch = replica.loader->Next().value();
        const std::vector<int32_t> samples = SamplesOf(batch.tokens);
        all.insert(all.end(), samples.begin(), samples.end());
        counted += batch.counted_targets;
      }
      std::vector<int32_t> expected(8);
      for (int32_t i = 0; i < 8; ++i) expected[static_cast<size_t>(i)] = 8 * step + i;
      EXPECT_EQ(all, expected) << replicas << " replicas, step " << step;
      EXPECT_EQ(counted, 8 * 3 - 2);
    }
  }
}

TEST(PrefetchingLoader, AResumedRunSeesTheTailOfTheWholeOne) {
  NumberedSource source;
  FakeClock clock;
  Loaded whole = Start(source, clock, Options(2, 0));
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(whole.loader->Next().ok());
  PrefetchingLoaderOptions options = Options(2, 0);
  options.first_step = 3;
  options.first_sample = 3 * 8;
  Loaded resumed = Start(source, clock, options);
  for (int step = 3; step < 8; ++step) {
    const StepBatch expected = whole.loader->Next().value();
    const StepBatch batch = resumed.loader->Next().value();
    EXPECT_EQ(batch.step, expected.step);
    EXPECT_EQ(SamplesOf(batch.tokens), SamplesOf(expected.tokens));
  }
}

TEST(PrefetchingLoader, AResumedRunMayChangeTheBatch) {
  NumberedSource source;
  FakeClock clock;
  PrefetchingLoaderOptions options = Options(1, 0);
  options.first_step = 3;
  options.first_sample = 20;  // consumed by three steps of some other batch
  Loaded resumed = Start(source, clock, options);
  EXPECT_EQ(SamplesOf(resumed.loader->Next()->tokens).front(), 20);
  EXPECT_EQ(SamplesOf(resumed.loader->Next()->tokens).front(), 28);
}

TEST(PrefetchingLoader, KeepsTheBatchInUseUntouched) {
  NumberedSource source;
  FakeClock clock;
  Loaded loaded = Start(source, clock, Options(1, 0));
  const StepBatch first = loaded.loader->Next().value();
  source.WaitForSamples(16);  // the second step is read beside it, and a third has no slot
  EXPECT_EQ(SamplesOf(first.tokens).front(), 0);
  EXPECT_EQ(SamplesOf(first.tokens).back(), 7);
}

TEST(PrefetchingLoader, ReadsAheadSoThatNothingIsWaitedFor) {
  FakeClock clock;
  NumberedSource source(&clock, absl::Seconds(1));
  Loaded loaded = Start(source, clock, Options(1, 0));
  source.WaitForSamples(16);  // both slots: from here on the source is idle and its clock stands still
  EXPECT_EQ(loaded.loader->Next()->waited, absl::ZeroDuration());
}

TEST(PrefetchingLoader, MeasuresTheWait) {
  FakeClock clock;
  NumberedSource source(&clock, absl::Seconds(1));
  PrefetchingLoaderOptions options = Options(1, 0);
  options.slots = 1;  // step 1 is read only while Next() waits for it
  Loaded loaded = Start(source, clock, options);
  ASSERT_TRUE(loaded.loader->Next().ok());
  EXPECT_EQ(loaded.loader->Next()->waited, absl::Seconds(8));
}

TEST(PrefetchingLoader, ReportsAnErrorAfterTheGoodStepsAndThenAgain) {
  FakeClock clock;
  NumberedSource source(nullptr, absl::ZeroDuration(), /*bad_sample=*/17);
  Loaded loaded = Start(source, clock, Options(1, 0));
  EXPECT_TRUE(loaded.loader->Next().ok());
  EXPECT_TRUE(loaded.loader->Next().ok());
  for (int again = 0; again < 2; ++again) {
    const absl::Status status = loaded.loader->Next().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(status.message(), "data of step 2: sector 7 is bad");
  }
}

TEST(PrefetchingLoader, EndsBeforeTheEndStep) {
  NumberedSource source;
  FakeClock clock;
  PrefetchingLoaderOptions options = Options(1, 0);
  options.end_step = 1;
  Loaded loaded = Start(source, clock, options);
  EXPECT_TRUE(loaded.loader->Next().ok());
  EXPECT_EQ(loaded.loader->Next().status().code(), absl::StatusCode::kOutOfRange);
}

TEST(PrefetchingLoader, StopsWhateverItIsDoing) {
  NumberedSource source;
  FakeClock clock;
  for (int64_t steps_taken = 0; steps_taken < 4; ++steps_taken) {
    for (int64_t samples : {0, 1, 9, 16}) {
      Loaded loaded = Start(source, clock, Options(1, 0));
      for (int64_t step = 0; step < steps_taken; ++step) ASSERT_TRUE(loaded.loader->Next().ok());
      source.WaitForSamples(samples);
      loaded.loader.reset();
    }
  }
}

TEST(PrefetchingLoader, SeveralThreadsGiveTheSameSteps) {
  NumberedSource source;
  FakeClock clock;
  Loaded one = Start(source, clock, Options(2, 1));
  PrefetchingLoaderOptions options = Options(2, 1);
  options.threads = 4;
  options.slots = 3;
  Loaded four = Start(source, clock, options);
  for (int step = 0; step < 40; ++step) {
    const StepBatch expected = one.loader->Next().value();
    const StepBatch batch = four.loader->Next().value();
    EXPECT_EQ(batch.tokens, expected.tokens);
    EXPECT_EQ(batch.targets, expected.targets);
    EXPECT_EQ(batch.counted_targets, expected.counted_targets);
  }
}

TEST(PrefetchingLoader, OfSeveralThreadsTheEarliestErrorIsReported) {
  FakeClock clock;
  NumberedSource source(nullptr, absl::ZeroDuration(), /*bad_sample=*/17);
  for (int again = 0; again < 20; ++again) {
    PrefetchingLoaderOptions options = Options(1, 0);
    options.threads = 3;
    options.slots = 4;
    Loaded loaded = Start(source, clock, options);
    EXPECT_TRUE(loaded.loader->Next().ok());
    EXPECT_TRUE(loaded.loader->Next().ok());
    EXPECT_EQ(loaded.loader->Next().status().message(), "data of step 2: sector 7 is bad");
  }
}

TEST(PrefetchingLoader, BringsDocumentStartsWhenAsked) {
  NumberedSource source;
  FakeClock clock;
  PrefetchingLoaderOptions options = Options(2, 1);
  EXPECT_TRUE(Start(source, clock, options).loader->Next()->document_starts.empty());
  options.document_starts = true;
  Loaded loaded = Start(source, clock, options);
  const StepBatch batch = loaded.loader->Next().value();
  EXPECT_EQ(batch.document_starts.size(), batch.tokens.size());
  // Sample i says i mod 3: the second micro-batch has samples 6 and 7.
  EXPECT_THAT(batch.micro_batch_document_starts(1), ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(PrefetchingLoader, NamesTheOptionThatIsWrong) {
  NumberedSource source;
  FakeClock clock;
  std::vector<int32_t> memory(1000);
  const auto error_of = [&](const PrefetchingLoaderOptions& options) {
    const absl::Status status = PrefetchingLoader::Start(source, clock, options, absl::MakeSpan(memory)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  PrefetchingLoaderOptions options = Options(3, 0);
  EXPECT_THAT(error_of(options), HasSubstr("global_batch is 8, expected a multiple of 3 replicas x micro-batch 2"));
  EXPECT_THAT(error_of(Options(2, 2)), HasSubstr("replica is 2, expected 0 to 1"));
  options = Options(1, 0);
  options.slots = 0;
  EXPECT_THAT(error_of(options), HasSubstr("slots is 0"));
  options.slots = 100;
  EXPECT_THAT(error_of(options), HasSubstr("memory holds 1000 values, 100 slots need 4800"));
}

}  // namespace
}  // namespace muster
