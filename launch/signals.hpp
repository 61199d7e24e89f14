// The signals dryfly-launch answers itself, and the state they were in before, which the ranks get back.
#pragma once

#include <signal.h>

namespace dryfly::launch {

struct Signals {
  sigset_t answered;  // of SIGHUP, SIGINT, SIGQUIT, SIGTERM those that are not ignored (nohup, background jobs)
  sigset_t original_mask;

  // Blocks the answered ones, SIGCHLD and SIGPIPE; makes SIGCHLD the default, without which children vanish unseen.
  static Signals take_over() {
    Signals signals{};
    sigemptyset(&signals.answered);
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
      struct sigaction action{};
      sigaction(number, nullptr, &action);
      if (action.sa_handler != SIG_IGN) sigaddset(&signals.answered, number);
    }
    signal(SIGCHLD, SIG_DFL);
    sigset_t blocked = signals.answered;
    sigaddset(&blocked, SIGCHLD);
    sigaddset(&blocked, SIGPIPE);
    sigprocmask(SIG_BLOCK, &blocked, &signals.original_mask);
    return signals;
  }
};

}  // namespace dryfly::launch
