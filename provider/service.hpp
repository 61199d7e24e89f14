// What the job's CXI service grants its processes: VNIs, traffic classes, and so many queues, counters and portal table
// entries of each NIC (docs/model/services.md). Refusals are those of libfabric's cxi provider, in its words; a class
// that is not granted is no error there: its messages travel as best effort. A job without a service may have all. The
// MPI library tells of an error number only, so the first rank of a run that is refused says what there is.
//
// Ranks of a node count their use together. Leaves out: address contexts, portal table entries of memory regions, and
// who is a member.
#pragma once

#include <cstdint>

#include "provider/auth_key.hpp"
#include "provider/process.hpp"

namespace dryfly::provider {

// Whether the key's service is the job's, and may use its VNI.
bool service_known(const rank::Channel& channel, std::uint32_t service);
bool key_granted(const rank::Channel& channel, const AuthKey& key);

// The class in which messages that ask for this one travel, of end-points with this VNI; false: in none.
bool granted_class(const rank::Channel& channel, std::uint16_t vni, std::uint8_t& traffic_class);

// What an end-point takes of its NIC, or a counter. 0, or the error; then nothing is taken.
int take_endpoint(const rank::Channel& channel, std::uint32_t nic);
void give_back_endpoint(const rank::Channel& channel, std::uint32_t nic);
int take_counter(const rank::Channel& channel, std::uint32_t nic);
void give_back_counter(const rank::Channel& channel, std::uint32_t nic);

}  // namespace dryfly::provider
