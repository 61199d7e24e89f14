// MPICH sorts the NICs that libfabric lists by name and then makes its own choice, by where they are in the host's
// hardware. On a simulated node the choice is the run's (rank/nic_choice.hpp), so MPICH is told of it by a setting of
// its own, unless the user has set that.
#pragma once

namespace dryfly::preload {

// Before MPICH reads its settings.
void wish_for_nic();

}  // namespace dryfly::preload
