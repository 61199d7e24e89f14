// Which NIC of its node a rank uses first. Models how Cray MPICH assigns NICs by MPICH_OFI_NIC_POLICY,
// MPICH_OFI_NIC_MAPPING and MPICH_OFI_NUM_NICS (docs/model/nodes.md#choice-of-a-nic):
//
//   BLOCK (default)  local ranks in equal consecutive blocks       ROUND-ROBIN  one after the other
//   NUMA             the nearest NIC; ranks of one domain take those that are equally near in turn
//   GPU              as NUMA, for the domain of the rank's GPU; --gpu-bind says which it is, else in blocks
//   USER             as MPICH_OFI_NIC_MAPPING says: "0:0-3; 1:4,5"
//
// --nic-bind of dryfly run names a NIC where MPICH_OFI_NIC_POLICY is not set; Open MPI, which does not heed the order,
// is shown no other (FI_CXI_DEVICE_NAME). Else a choice changes the order in which fi_getinfo lists the NICs and takes
// none away. The variables are read in the rank: a wrapper script may set them. What the rank knows of its node comes
// in DRYFLY_NODE, written by python/dryfly/case/nics.py. Loaded into user programs: libc only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::rank {

inline constexpr std::uint32_t node_nics_max = 64;

struct NodeNics {
  std::uint32_t nics = 0;
  std::uint32_t local_rank = 0;
  std::uint32_t local_ranks = 1;
  std::uint32_t domains = 1;  // NUMA domains with cores, in equal blocks on the sockets; ranks are spread over them
  std::uint32_t sockets = 1;
  std::uint32_t nic_domain[node_nics_max] = {};
  std::uint32_t gpus = 0;
  std::uint32_t gpu_domain[node_nics_max] = {};
  // Where the launcher has bound the rank (dryfly run --cpu-bind and its like); not_said: as in `domains`, in blocks.
  static constexpr std::uint32_t not_said = ~std::uint32_t{0};
  std::uint32_t domain = not_said;
  std::uint32_t domain_turn = 0;  // ranks of lower numbers in the same
  std::uint32_t gpu = not_said;
  std::uint32_t gpu_turn = 0;    // ranks of lower numbers whose GPUs are in the same domain
  std::uint32_t nic = not_said;  // --nic-bind
};

// From DRYFLY_NODE's text; false if it is none.
bool read_node_nics(const char* text, NodeNics& node);

struct NicSettings {
  const char* policy = nullptr;  // each may be null: not set
  const char* mapping = nullptr;
  const char* number = nullptr;
};
NicSettings nic_settings_of_environment();

enum class NicChoice : std::uint8_t { chosen, unknown_policy, bad_mapping, not_mapped, bad_number, no_gpus };

NicChoice choose_nic(const NodeNics& node, const NicSettings& settings, std::uint32_t& nic);
// What is wrong: a sentence that begins with the variable's name and value.
void write_reason(NicChoice choice, const NodeNics& node, const NicSettings& settings, char* text, std::size_t room);

}  // namespace dryfly::rank
