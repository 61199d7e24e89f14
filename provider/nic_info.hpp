// The description of a NIC in fi_info: its name, and that its link is up. Speed and packet size stay 0 (unknown):
// the provider knows no number of the machine. The bus is unknown unless DRYFLY_NIC_BUS=pci asks for made-up PCI
// addresses: a program that sees PCI addresses (MPICH) prefers NICs by where they are in the host's own hardware
// tree, and one that sees none takes the first in the list, which is the NIC the run has given to the rank.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace dryfly::provider {

// nullptr without memory. fi_freeinfo releases it through its operations.
fid_nic* describe_nic(const char* name, std::uint32_t index, const char* node_name);

}  // namespace dryfly::provider
