// The process between another launcher and a rank: `dryfly-launch --shim SOCKET VARIABLE`. The launcher says in
// VARIABLE which rank it is (PMI_RANK, PMIX_RANK, SLURM_PROCID, PALS_RANKID, FLUX_TASK_RANK). The shim gets the rest
// from dryfly-launch (launch/foreign.hpp), starts the program as its child, reports how it ended, and stays until
// dryfly-launch lets go, whichever way: then it ends what the rank has left behind and exits with 0, because how the
// rank ended is said by dryfly; the launcher would say it once more in its own way.
//
// The rank dies with its shim, and the shim with whoever started it (PR_SET_PDEATHSIG).
#pragma once

#include <string>

namespace dryfly::launch {

// The exit status for the launcher.
int run_shim(const std::string& socket_name, const std::string& rank_variable);

}  // namespace dryfly::launch
