// Runs one job: starts its ranks, serves their PMI, notices how it ends, and leaves no process behind.
//
// How it ends is one line on status_fd, which Python turns into a sentence, and an exit status:
//
//   done                           all ranks ended with 0                                         0
//   exit rank R pid P code C       the first rank to end with another code                        C
//   signal rank R pid P signal S   the first rank to be killed                                    128 + S
//   abort rank R code C            MPI_Abort                                                      C modulo 256, 1 for 0
//   if C is not 0 early rank R                   ended with 0 inside MPI, or without MPI in a job that uses it  1
//   interrupted S                  dryfly-launch got SIGHUP, SIGINT, SIGQUIT or SIGTERM           128 + S
//   timeout                        the time given was not enough                                  124
//   noexec PATH REASON             the program or the working directory cannot be used            127
//   vanished rank R pid P          what watches the rank has gone without a word (launch/shim.hpp)                  1
//   starter exit C, starter signal S   the launcher that starts the ranks has ended before them                     1
//   lost S                         dryfly-launch itself was killed (launch/guard.hpp)             128 + S
//
// If the reader of status_fd goes away, the job ends as if by SIGHUP: nobody waits for it any more.
//
// A rank is the process started here and, where that is a wrapper (a shell or Python script), also the MPI process
// behind it: whoever sees that process names it by a line `attached R PID` on attach_fd.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/plan.hpp"
#include "launch/signals.hpp"

namespace dryfly::launch {

struct Options {
  int status_fd = 2;
  int attach_fd = -1;
  std::optional<std::chrono::nanoseconds> timeout;
  std::vector<std::string> program;  // and its arguments
  // One rank may run under a debugger. SIGINT is then the debugger's, and does not end the job.
  int debug_rank = -1;
  std::vector<std::string> debug_command;
};

// What is at fault before a process is started throws SpecError. Has to be called in a process of its own, in which it
// changes limits and becomes a subreaper.
int supervise(const Plan& plan, const Options& options, const Signals& signals);

}  // namespace dryfly::launch
