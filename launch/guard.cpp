#include "launch/guard.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include "launch/descendants.hpp"

namespace dryfly::launch {
namespace {

using namespace std::chrono_literals;

int wait_for_end_of(pid_t supervisor, const Signals& signals) {
  sigset_t awaited = signals.answered;
  sigaddset(&awaited, SIGCHLD);
  while (true) {
    int status = 0;
    if (waitpid(supervisor, &status, WNOHANG) == supervisor) return status;
    const int signal_number = sigwaitinfo(&awaited, nullptr);
    if (signal_number > 0 && signal_number != SIGCHLD) kill(supervisor, signal_number);
  }
}

}  // namespace

int guarded(const Signals& signals, const std::function<int()>& supervisor,
            const std::function<void(int signal_number)>& report_loss) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t guard = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != guard) _exit(128 + SIGTERM);
    return supervisor();
  }
  const int status = wait_for_end_of(child, signals);
  end_all_descendants(0ms, 4000ms);  // nothing is left to do, unless the supervisor was killed or has failed
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  report_loss(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace dryfly::launch
