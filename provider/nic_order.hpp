// In which order fi_getinfo lists the NICs of the node: the rank's own first (rank/nic_choice.hpp), the others behind
// it. With MPICH_OFI_NIC_VERBOSE it says so as Cray MPICH does: 1, the NICs of the job's first rank; 2, also the NIC of
// every rank.
#pragma once

#include <cstdint>

#include "rank/channel.hpp"

namespace dryfly::provider {

// 0, or a negative libfabric error when the settings name no NIC for this rank; why is said on stderr.
int first_nic(const rank::Channel& channel, std::uint32_t& nic);

}  // namespace dryfly::provider
