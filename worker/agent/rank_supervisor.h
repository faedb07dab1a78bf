// Starts, stops and buries the rank processes of one host, so that what runs is what the coordinator desires. It
// restarts nothing by itself: what ended is reported until acknowledged, and a new attempt comes from the coordinator.
//
// When one rank of a gang dies badly, the rest of it on this host is killed at once: its neighbours could only wait for
// it.
//
// Owned by the agent; on the loop. The loop's thread is the one that forks, and must live as long as the process
// (PR_SET_PDEATHSIG).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/event_loop.h"
#include "muster/v1/worker.pb.h"
#include "worker/agent/child_process.h"
#include "worker/agent/convergence.h"
#include "worker/agent/fd_watcher.h"
#include "worker/agent/log_spool.h"
#include "worker/agent/rank_command.h"
#include "worker/agent/rank_key.h"

namespace muster {

// All called on the loop.
struct SupervisorEvents {
  // Something that the coordinator should hear now and not with the next heartbeat.
  std::function<void()> on_change;
  // The rank has ended: what it said may be kept in `directory`, which goes when the end is acknowledged.
  std::function<void(const RankKey& rank, const std::string& directory)> on_ended;
  // The rank's end was acknowledged, or it was never here: whatever is kept for it can go.
  std::function<void(const RankKey& rank)> on_forgotten;
};

class RankSupervisor {
 public:
  // The pointers outlive this.
  RankSupervisor(EventLoop* loop, const Clock* clock, FdWatcher* watcher, LogSpool* spool, RankCommandOptions command,
                 SupervisorEvents events);
  // Kills what lives and waits for it.
  ~RankSupervisor();

  // Ignored when its generation is older than what this session brought already.
  void SetDesired(v1::Desired desired);
  // Generations are compared within one session only. Nothing changes until its first Desired.
  void BeginSession();
  int64_t generation() const { return desired_.generation(); }

  void Acknowledge(const v1::ExitsAcknowledged& acknowledged);

  // A rank that ended under an earlier agent, to be reported like our own.
  void AdoptEnded(const v1::ObservedRank& ended);

  // What a rank said of itself. False when it is not one of the living ranks here.
  bool OnReport(const v1::RankReport& report);

  // SIGKILL to all, now.
  void KillAll(const std::string& reason);
  // SIGTERM to all, SIGKILL to those that live after `grace`. Nothing is started any more.
  void StopAll(absl::Duration grace);

  int64_t living() const;
  bool all_acknowledged() const;
  // Samples what the ranks use.
  std::vector<v1::ObservedRank> Observe();
  // The assignment of a rank that is here, living or not; null otherwise.
  const v1::Assignment* FindAssignment(const RankKey& rank) const;

 private:
  struct Rank;

  void ConvergeNow();
  void Start(const v1::Assignment& assignment);
  void Stop(Rank& rank, const std::string& reason, absl::Duration grace);
  void Kill(Rank& rank, const std::string& reason);
  void ReportAbsent(const v1::Assignment& assignment);

  void ReadOutput(const RankKey& key);
  void OnExit(const RankKey& key);
  void End(Rank& rank, v1::RankExit exit);
  void KillRestOfGang(const Rank& failed);
  Rank* Find(const RankKey& key);

  EventLoop* const loop_;
  const Clock* const clock_;
  FdWatcher* const watcher_;
  LogSpool* const spool_;
  const RankCommandOptions command_;
  const SupervisorEvents events_;

  v1::Desired desired_;
  bool session_began_ = false;  // the next Desired is taken whatever its generation
  bool closing_ = false;        // StopAll was called
  std::map<RankKey, std::unique_ptr<Rank>> ranks_;
};

}  // namespace muster
