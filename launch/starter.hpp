// Turns a planned rank into a running process with a PMI socket: what it executes, sees and reads. The limit on
// descriptors is raised for dryfly-launch, which holds several for each rank, and put back for the ranks.
#pragma once

#include <sys/resource.h>

#include <string>
#include <variant>
#include <vector>

#include "launch/environment.hpp"
#include "launch/plan.hpp"
#include "launch/signals.hpp"
#include "launch/spawn.hpp"
#include "launch/supervise.hpp"

namespace dryfly::launch {

struct StartedRank {
  Spawned process;
  int pmi_fd = -1;  // the server's end
};

class Starter {
 public:
  // Raises the limit, SpecError if the hard limit is too low; from here on programs are searched in the ranks' PATH.
  Starter(const Plan& plan, const Options& options, const Signals& signals);
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;
  ~Starter();

  // `pmix` goes to the rank's environment.
  std::variant<StartedRank, SpawnFailure> start(int rank, const std::vector<std::string>& pmix) const;

  // Starts the launcher that starts the ranks; their shims find their way by `socket_name`.
  std::variant<Spawned, SpawnFailure> start_starter(const std::string& socket_name) const;

  // What the shim of a rank is answered (launch/foreign.hpp).
  std::vector<std::string> texts_for_shim(int rank, const std::vector<std::string>& pmix) const;

 private:
  const Plan& plan_;
  const Options& options_;
  const Signals& signals_;
  rlimit original_limit_;
  int null_fd_;
  Environments environments_;
};

}  // namespace dryfly::launch
