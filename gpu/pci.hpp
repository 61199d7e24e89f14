// Where a device is on PCI: where hwloc shows it on the simulated node (python/dryfly/machine/gpus.py), by the number
// that the node gives it, whatever a mask leaves of that. Tiles are where their GPU is.
#pragma once

#include <stdio.h>

#include "gpu/settings.hpp"

namespace dryfly::gpu {

inline constexpr int pci_domain = 0x2000;
inline int pci_bus(const Settings& settings, int device) { return settings.physical[device] / settings.tiles + 1; }

inline void write_pci(const Settings& settings, int device, char* to, std::size_t length) {
  snprintf(to, length, "%04x:%02x:00.0", pci_domain, pci_bus(settings, device));
}

// -1: no device that this process sees is there.
inline int device_at_pci(const Settings& settings, const char* address) {
  unsigned domain = 0, bus = 0;
  if (sscanf(address, "%x:%x:", &domain, &bus) != 2 || domain != pci_domain) return -1;
  for (int i = 0; i < settings.devices; ++i) {
    if (pci_bus(settings, i) == static_cast<int>(bus)) return i;
  }
  return -1;
}

}  // namespace dryfly::gpu
