// Attributes of a device that CUDA numbers, as both of its libraries answer them. What is not simulated is 0.
#pragma once

#include "gpu/pci.hpp"

namespace dryfly::gpu::cuda {

// False where CUDA 12 has no such attribute.
inline bool attribute(const Settings& settings, int device, int number, int& value) {
  constexpr int last = 150;
  if (number < 1 || number > last) return false;
  switch (number) {
    case 1:  // threads of a block, and its sides
    case 2:
    case 3:
      value = 1024;
      break;
    case 4:
      value = 64;
      break;
    case 5:  // blocks of a grid, by its sides
      value = 2147483647;
      break;
    case 6:
    case 7:
      value = 65535;
      break;
    case 10:  // threads of a warp
      value = 32;
      break;
    case 16:
      value = settings.multiprocessors;
      break;
    case 75:  // compute capability
      value = settings.capability / 10;
      break;
    case 76:
      value = settings.capability % 10;
      break;
    case 15:   // copies beside kernels
    case 19:   // host memory can be mapped
    case 31:   // kernels beside each other
    case 41:   // unified addresses
    case 83:   // managed memory
    case 89:   // managed memory by device and host at once
    case 91:   // registered memory has the host's address
    case 115:  // pools of memory
    case 116:  // NICs reach the device's memory
    case 122:  // streams write and wait for words of 64 bits
    case 123:  // and until a bit is missing
      value = 1;
      break;
    case 33:
      value = pci_bus(settings, device);
      break;
    case 50:
      value = pci_domain;
      break;
    case 40:  // copy engines
      value = 2;
      break;
    default:
      value = 0;
  }
  return true;
}

}  // namespace dryfly::gpu::cuda
