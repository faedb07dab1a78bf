#include "common/base/signals.h"

#include <pthread.h>
#include <signal.h>

namespace muster {
namespace {

sigset_t ShutdownSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGUSR2);  // ends the waiting thread; nobody else uses it
  return set;
}

}  // namespace

ShutdownSignals::ShutdownSignals(std::function<void(int signal, int count)> on_signal) {
  const sigset_t set = ShutdownSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([set, on_signal = std::move(on_signal)] {
    int signal = 0;
    for (int count = 1; sigwait(&set, &signal) == 0 && signal != SIGUSR2; ++count) on_signal(signal, count);
  });
}

ShutdownSignals::~ShutdownSignals() {
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
}

void UnblockShutdownSignals() {
  const sigset_t set = ShutdownSet();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace muster
