// fi_getinfo: one fi_info for each NIC of the rank's node, the rank's own NIC first, filled in from the hints.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace dryfly::provider {

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
             fi_info** infos);
// The same of the memory that the ranks of a node share: one.
int get_node_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                  const fi_info* hints, fi_info** infos);

// The index of the NIC that a domain name stands for; false for a name that is not ours.
bool nic_index_of(const char* domain_name, std::uint32_t& index);

}  // namespace dryfly::provider
