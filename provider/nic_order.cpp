#include "provider/nic_order.hpp"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "provider/attributes.hpp"
#include "provider/nic_info.hpp"
#include "provider/refusal.hpp"
#include "rank/nic_choice.hpp"

namespace dryfly::provider {

namespace {

// In one write, as the other ranks say things too.
void say_nics(const rank::Channel& channel, const rank::NodeNics& node) {
  char line[4096];
  const auto room = static_cast<int>(sizeof line);
  int end = snprintf(line, sizeof line, "PE %u: MPICH/OFI: %u NICs on %s:", channel.rank(), node.nics,
                     channel.welcome().node_name);
  for (std::uint32_t nic = 0; nic < node.nics && end < room; ++nic) {
    const PciAddress pci = pci_address(nic);
    end += snprintf(line + end, static_cast<std::size_t>(room - end), " %s%u (%04x:%02x:%02x.%x, NUMA domain %u)",
                    domain_prefix, nic, pci.domain, pci.bus, pci.device, pci.function, node.nic_domain[nic]);
  }
  dprintf(STDERR_FILENO, "%s\n", line);
}

void say_choice(const rank::Channel& channel, const rank::NodeNics& node, const rank::NicSettings& settings,
                std::uint32_t nic) {
  const char* policy = settings.policy != nullptr && *settings.policy != 0 ? settings.policy : "BLOCK";
  dprintf(STDERR_FILENO, "PE %u: MPICH/OFI: local rank %u on %s uses %s%u (policy %s)\n", channel.rank(),
          node.local_rank, channel.welcome().node_name, domain_prefix, nic, policy);
}

void say(const rank::Channel& channel, const rank::NodeNics& node, const rank::NicSettings& settings,
         std::uint32_t nic) {
  static bool said = false;
  const char* level = getenv("MPICH_OFI_NIC_VERBOSE");
  if (said || level == nullptr) return;
  said = true;
  const long verbose = strtol(level, nullptr, 10);
  if (verbose >= 1 && channel.rank() == 0) say_nics(channel, node);
  if (verbose >= 2) say_choice(channel, node, settings, nic);
}

bool is_level(const char* text) { return *text >= '0' && *text <= '2' && text[1] == 0; }

}  // namespace

int first_nic(const rank::Channel& channel, std::uint32_t& nic) {
  nic = channel.welcome().nic_index;
  rank::NodeNics node;
  // Who has joined the run without having been placed by it knows nothing of its node.
  if (!rank::read_node_nics(getenv("DRYFLY_NODE"), node) || node.nics != channel.welcome().nics_per_node) return 0;
  const rank::NicSettings settings = rank::nic_settings_of_environment();
  const rank::NicChoice choice = rank::choose_nic(node, settings, nic);
  if (choice != rank::NicChoice::chosen) {
    char text[512];
    rank::write_reason(choice, node, settings, text, sizeof text);
    refuse_setting(channel, text);
    return -FI_EINVAL;
  }
  if (const char* level = getenv("MPICH_OFI_NIC_VERBOSE"); level != nullptr && !is_level(level)) {
    char text[128];
    snprintf(text, sizeof text, "MPICH_OFI_NIC_VERBOSE=%s: accepted is 0, 1 or 2", level);
    refuse_setting(channel, text);
    return -FI_EINVAL;
  }
  say(channel, node, settings, nic);
  return 0;
}

}  // namespace dryfly::provider
