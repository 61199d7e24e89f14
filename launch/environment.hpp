// What a rank finds in its environment: what dryfly-launch inherited, the plan's `env`, the plan's `rankenv`, and
// last what leads to the PMIx server, the name of the rank's node (DRYFLY_NODE_NAME), what MPICH's PMI client reads
// to find its server (PMI_FD, PMI_RANK, PMI_SIZE, PMI_SPAWNED), what hydra, Open MPI's mpirun, PALS and Slurm also set
// and wrapper scripts look for (MPI_LOCALRANKID, OMPI_COMM_WORLD_LOCAL_RANK, PALS_LOCAL_RANKID, SLURM_LOCALID and their
// kin), and DRYFLY_RANK. The later one wins; a launcher that starts the ranks keeps the numbers that it gives itself.
// What another process manager left behind (PMI_PORT, PMIX_SERVER_URI2 and their kin) is taken out: MPI would follow
// it. Left out is what says that the job is Slurm's or PALS' (SLURM_JOB_ID and so on): it is not.
#pragma once

#include <string>
#include <vector>

#include "launch/plan.hpp"

namespace dryfly::launch {

class Environments {
 public:
  // `inherited` is a null-terminated array of NAME=VALUE, as environ is.
  Environments(const Plan& plan, const char* const* inherited);

  // NAME=VALUE, each name once, sorted. `pmix` is what PmixServer gives for the rank.
  std::vector<std::string> of_rank(int rank, int pmi_fd, const std::vector<std::string>& pmix = {}) const;

  // Of a launcher that starts the ranks.
  std::vector<std::string> of_starter() const;

  // What such a rank gets over what its launcher gave it, as the texts of launch/foreign.hpp.
  std::vector<std::string> for_shim(int rank, const std::vector<std::string>& pmix) const;

 private:
  std::vector<std::string> dryfly_variables(int rank) const;
  std::vector<std::string> numbers(int rank) const;
  std::vector<std::string> pmi_variables(int rank) const;

  const Plan& plan_;
  std::vector<std::string> inherited_;
  std::vector<int> ranks_beside_;  // by rank: how many ranks its node has
};

}  // namespace dryfly::launch
