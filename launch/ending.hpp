// How a process ended, also one that is somebody else's child: the MPI process behind a wrapper script is waited for
// by the script, which may turn its death by a signal into an exit code or into nothing.
#pragma once

#include <sys/types.h>

#include <optional>

namespace dryfly::launch {

struct Ending {
  bool by_signal = false;
  int value = 0;  // the signal or the exit code

  bool clean() const { return !by_signal && value == 0; }
};

// Once the pidfd is readable. A child of ours is reaped by this. Of others, the kernel tells from 6.15 on
// (PIDFD_GET_INFO, after their parent has reaped them), and /proc as long as nobody has. Empty if neither does.
std::optional<Ending> ending_of(int pidfd, pid_t pid);

// The signal in a wrapper's exit code: shells give 128 + signal, Python's sys.exit(-signal) gives 256 - signal.
std::optional<int> signal_in_exit_code(int code);

}  // namespace dryfly::launch
