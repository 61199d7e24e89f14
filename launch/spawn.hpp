// Starts one rank: a child that sees its own environment, its own end of a PMI socket, dies with its parent
// (PR_SET_PDEATHSIG), and has the signal mask, the descriptor limit and the standard output dryfly-launch was given.
//
// The child is made with clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD): no page table is copied, the pidfd has no race
// with the child's end, and an exec that fails is known to the caller at once, from shared memory.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <variant>
#include <vector>

namespace dryfly::launch {

struct SpawnRequest {
  std::vector<std::string> command;  // found along PATH, as a shell does
  std::vector<std::string> environment;
  std::string directory;  // empty: stay
  int pmi_fd = -1;        // stays open in the child under this number
  int stdin_fd = 0;       // becomes the child's standard input
  // Whether the child leaves the terminal's foreground group, so that Ctrl-C reaches dryfly-launch and not the rank.
  bool own_group = true;
  sigset_t signal_mask{};
  rlimit descriptor_limit{};
};

struct Spawned {
  pid_t pid = -1;
  int pidfd = -1;
};

struct SpawnFailure {
  std::string path;  // what could not be used: the program or the directory
  int error = 0;     // errno
};

std::variant<Spawned, SpawnFailure> spawn(const SpawnRequest& request);

}  // namespace dryfly::launch
