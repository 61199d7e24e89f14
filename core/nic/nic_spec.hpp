// Reads nic.* and node.* of the resolved spec (docs/reference/resolved-spec.md).
#pragma once

#include "core/nic/nic.hpp"
#include "core/spec/spec.hpp"

namespace dryfly {

// Throws SpecError naming the field, its value and what is accepted.
NicSpec nic_spec(const Spec& spec);
NodeMemorySpec node_memory_spec(const Spec& spec);
// By the NIC's number on its node; a spec that does not say has them all on one socket.
std::vector<std::uint32_t> nic_sockets(const Spec& spec);
// The same, as MemoryPlace::nic_gpu; empty where the spec does not say.
std::vector<std::uint8_t> nic_gpus(const Spec& spec);

}  // namespace dryfly
