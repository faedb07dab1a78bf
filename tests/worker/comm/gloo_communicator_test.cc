// What only processes and sockets can show; collectives_test.cc holds Gloo to the interface's promises.
#include "worker/comm/gloo_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "tests/support/gloo_harness.h"
#include "tests/support/memory_rendezvous_store.h"
#include "tests/support/process_rendezvous_store.h"

// Read by LeakSanitizer where a build has it: Gloo forgets its list of interfaces when it refuses one, and the process
// then ends.
extern "C" const char* __lsan_default_suppressions() { return "leak:gloo::transport::tcp::CreateDeviceAttr\n"; }

namespace muster {
namespace {

using testing::HasSubstr;

// A rank that the test forked. What it writes goes to the test through a pipe.
class RankProcess {
 public:
  // Runs `body` in a child, with the descriptor of the pipe's end.
  explicit RankProcess(const std::function<void(int pipe)>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      alarm(60);  // if the test dies, so does its child
      body(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    read_end_ = ends[0];
  }
  ~RankProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(read_end_);
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void Signal(int signal) { kill(pid_, signal); }

  // Blocks for one byte.
  char ReadByte() {
    char byte = 0;
    EXPECT_EQ(read(read_end_, &byte, 1), 1);
    return byte;
  }
  // Blocks until the child has ended.
  std::string ReadAll() {
    std::string all;
    char buffer[4096];
    for (ssize_t count; (count = read(read_end_, buffer, sizeof(buffer))) > 0;)
      all.append(buffer, static_cast<size_t>(count));
    return all;
  }

 private:
  pid_t pid_ = -1;
  int read_end_ = -1;
};

void Write(int pipe, absl::string_view text) {
  if (write(pipe, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(1);
}

// All ranks open an exchange of `bytes` with every other and say so with one byte; then the last blocks for ever with
// its sends not posted, and the others wait and write how the wait ended: "CODE: message" or "OK".
void OpenExchangeAndReport(RendezvousStore& store, int rank, int size, int64_t bytes, absl::Duration deadline,
                           int pipe) {
  GlooOptions options;
  options.rank = rank;
  options.size = size;
  options.operation_deadline = deadline;
  auto world = MakeGlooCommunicator(options, store);
  if (!world.ok()) return Write(pipe, world.status().ToString());

  const bool victim = rank == size - 1;
  std::vector<std::vector<char>> sent(static_cast<size_t>(size)), received(static_cast<size_t>(size));
  std::vector<Transfer> transfers;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    std::vector<char>& to = sent[static_cast<size_t>(peer)];
    std::vector<char>& from = received[static_cast<size_t>(peer)];
    to.resize(static_cast<size_t>(bytes));
    from.resize(static_cast<size_t>(bytes));
    transfers.push_back({Transfer::Direction::kReceive, peer, from.data(), bytes});
    if (!victim) transfers.push_back({Transfer::Direction::kSend, peer, to.data(), bytes});
  }
  const auto ticket = (*world)->Exchange(transfers);
  Write(pipe, "R");
  if (victim) pause();
  const absl::Time start = absl::Now();
  const absl::Status status = ticket.ok() ? (*world)->Wait(*ticket) : ticket.status();
  Write(pipe, absl::StrCat(status.ToString(), absl::Now() - start < deadline + absl::Seconds(5) ? "" : " TOO LATE"));
}

// Forks `size` ranks, sends `signal` to the last when every exchange is open, and returns what the others wrote.
std::vector<std::string> SignalLastDuringExchange(int size, int64_t bytes, absl::Duration deadline, int signal) {
  ProcessRendezvousStore store;
  std::vector<std::unique_ptr<RankProcess>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<RankProcess>(
        [&, rank](int pipe) { OpenExchangeAndReport(store, rank, size, bytes, deadline, pipe); }));
  }
  for (const auto& rank : ranks) EXPECT_EQ(rank->ReadByte(), 'R');
  ranks.back()->Signal(signal);
  std::vector<std::string> reports;
  for (int rank = 0; rank < size - 1; ++rank) reports.push_back(ranks[static_cast<size_t>(rank)]->ReadAll());
  return reports;
}

TEST(GlooCommunicatorTest, AKilledRankIsUnavailableToItsPeersLongBeforeTheDeadline) {
  for (const int64_t bytes : {int64_t{8}, int64_t{32} << 20}) {
    const absl::Time start = absl::Now();
    const auto reports = SignalLastDuringExchange(3, bytes, absl::Minutes(5), SIGKILL);
    EXPECT_LT(absl::Now() - start, absl::Seconds(50));
    for (const std::string& report : reports) {
      EXPECT_THAT(report, testing::StartsWith("UNAVAILABLE: group world, operation #0: "));
      EXPECT_THAT(report, HasSubstr("the peer is gone"));
    }
  }
}

TEST(GlooCommunicatorTest, AStoppedRankIsLateByNameWhenTheDeadlineHasPassed) {
  const auto reports = SignalLastDuringExchange(2, 1024, absl::Milliseconds(500), SIGSTOP);
  EXPECT_EQ(
      reports[0],
      "DEADLINE_EXCEEDED: group world, operation #0: receive of 1024 bytes from rank 1 (world rank 1): the peer did "
      "not take part within 500ms");
}

// Stops its process at the first Get, when the addresses are published and nothing is connected.
class StoppingStore : public RendezvousStore {
 public:
  explicit StoppingStore(RendezvousStore& store) : store_(store) {}
  absl::Status Set(absl::string_view key, absl::string_view value) override { return store_.Set(key, value); }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    raise(SIGSTOP);
    return store_.Get(key, timeout);
  }

 private:
  RendezvousStore& store_;
};

TEST(GlooCommunicatorTest, ARankThatStopsDuringSetUpIsSeenWithinTheSetUpDeadline) {
  ProcessRendezvousStore store;
  GlooOptions options;
  options.size = 2;
  options.setup_deadline = absl::Seconds(2);
  RankProcess stopped([&](int pipe) {
    StoppingStore stopping(store);
    GlooOptions peer_options = options;
    peer_options.rank = 1;
    Write(pipe, MakeGlooCommunicator(peer_options, stopping).status().ToString());
  });
  RankProcess waits([&](int pipe) {
    const absl::Time start = absl::Now();
    const absl::Status status = MakeGlooCommunicator(options, store).status();
    Write(pipe, absl::StrCat(status.ToString(), absl::Now() - start < absl::Seconds(4) ? "" : " TOO LATE"));
  });
  const std::string report = waits.ReadAll();
  EXPECT_THAT(report, testing::StartsWith("DEADLINE_EXCEEDED: "));
  EXPECT_THAT(report, HasSubstr("rank 1"));
  EXPECT_THAT(report, testing::Not(HasSubstr("TOO LATE")));
}

TEST(GlooCommunicatorTest, ARankThatNeverAppearsIsNamed) {
  MemoryRendezvousStore store;
  GlooOptions options;
  options.size = 2;
  options.setup_deadline = absl::Milliseconds(200);
  const absl::Status status = MakeGlooCommunicator(options, store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("world rank 0 waits for the address of rank 1"));
}

TEST(GlooCommunicatorTest, TwoRanksWithOneNumberAreRefused) {
  MemoryRendezvousStore store;
  ASSERT_TRUE(store.Set("gloo/0", "somebody else's address").ok());
  GlooOptions options;
  options.size = 2;
  EXPECT_EQ(MakeGlooCommunicator(options, store).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(GlooCommunicatorTest, AHostOrInterfaceThatIsNotOursIsNamed) {
  MemoryRendezvousStore store;
  GlooOptions options;
  options.size = 2;
  options.host = "192.0.2.1";  // reserved for documentation (RFC 5737)
  absl::Status status = MakeGlooCommunicator(options, store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot listen on host 192.0.2.1"));
  options.interface = "muster-none0";
  status = MakeGlooCommunicator(options, store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot listen on interface muster-none0"));
}

TEST(GlooCommunicatorTest, AWorldOfOneNeedsNobody) {
  MemoryRendezvousStore store;
  auto world = MakeGlooCommunicator(GlooOptions(), store);
  ASSERT_TRUE(world.ok());
  EXPECT_TRUE(Barrier(**world).ok());
}

TEST(GlooCommunicatorTest, WorldsThatEndGiveBackEveryDescriptor) {
  const auto open_descriptors = [] {
    const std::filesystem::directory_iterator descriptors("/proc/self/fd");
    return std::distance(begin(descriptors), end(descriptors));
  };
  const auto before = open_descriptors();
  for (int round = 0; round < 10; ++round) {
    EXPECT_TRUE(AllOk(RunGlooRanks(4, [](Communicator& world) { return Barrier(world); })));
  }
  // A world that fails gives them back as well.
  const auto statuses = RunGlooRanks(3, [](Communicator& world) {
    return world.rank() == 0 ? absl::AbortedError("rank 0 has had enough") : Barrier(world);
  });
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(GlooCommunicatorTest, AGroupDestroyedWithOperationsOpenTakesTheWorldDown) {
  const auto statuses = RunGlooRanks(2, [](Communicator& world) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(auto group, world.Split({0, 1}, "pair"));
    std::vector<char> bytes(1 << 20);
    if (world.rank() == 0) {
      {
        std::vector<char> dies_early(1 << 20);
        MUSTER_ASSIGN_OR_RETURN(const Ticket open,
                                group->Exchange({{Transfer::Direction::kReceive, 1, dies_early.data(), 1 << 20}}));
        EXPECT_EQ(open, 0);
        group.reset();
      }
      return Barrier(world);
    }
    MUSTER_RETURN_IF_ERROR(Barrier(world));
    return absl::OkStatus();
  });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace muster
