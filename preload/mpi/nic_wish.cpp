#include "preload/mpi/nic_wish.hpp"

#include <stdio.h>
#include <stdlib.h>

#include "rank/nic_choice.hpp"

namespace dryfly::preload {

namespace {

constexpr char setting[] = "MPIR_CVAR_CH4_OFI_PREF_NIC";
constexpr const char* other_names[] = {"MPICH_CH4_OFI_PREF_NIC", "MPIR_PARAM_CH4_OFI_PREF_NIC"};
// Of more NICs the order by name is another than the order by number.
constexpr std::uint32_t nics_in_name_order = 10;

}  // namespace

void wish_for_nic() {
  for (const char* name : other_names) {
    if (getenv(name) != nullptr) return;
  }
  rank::NodeNics node;
  std::uint32_t nic = 0;
  if (!rank::read_node_nics(getenv("DRYFLY_NODE"), node) || node.nics < 2 || node.nics > nics_in_name_order) return;
  if (rank::choose_nic(node, rank::nic_settings_of_environment(), nic) != rank::NicChoice::chosen) return;
  char value[16];
  snprintf(value, sizeof value, "%u", nic);
  setenv(setting, value, 0);
}

}  // namespace dryfly::preload
