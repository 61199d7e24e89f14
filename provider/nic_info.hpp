// The description of a NIC in fi_info: its name, its kind and MTU (docs/model/nic-protocols.md#network-information),
// its place on the PCI bus, and that its link is up. The speed stays 0 (unknown): the provider knows no number of
// the machine. The PCI address is made up: one bus a NIC, in a PCI domain that the computer below does not have, so
// that nobody takes the NIC for one of its devices.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace dryfly::provider {

struct PciAddress {
  std::uint16_t domain;
  std::uint8_t bus;
  std::uint8_t device;
  std::uint8_t function;
};

// Of the NIC that is the node's number `index`. Buses count from 1, so that no address is all zeros.
constexpr PciAddress pci_address(std::uint32_t index) {
  return {.domain = 0x1000, .bus = static_cast<std::uint8_t>(index + 1), .device = 0, .function = 0};
}

// nullptr without memory. fi_freeinfo releases it through its operations.
fid_nic* describe_nic(const char* name, std::uint32_t index, const char* node_name);

}  // namespace dryfly::provider
