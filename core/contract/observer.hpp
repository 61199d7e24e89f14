// Who watches the network: for recordings. The network tells what has happened and never asks; without an observer it
// looks at one pointer for each event.
#pragma once

#include <cstdint>

namespace dryfly {

// One frame on one link, told when its head (at a NIC: its tail) has come to the other end.
struct CarriedFrame {
  std::uint32_t port = 0;    // the one that drives the link; NICs' ports follow those of the switches
  std::uint32_t packet = 0;  // names it while it is under way
  std::uint32_t frame_bytes = 0;
  bool acknowledgement = false;
  bool to_nic = false;
  std::uint64_t start_ps = 0;  // the link is occupied from here
  std::uint64_t end_ps = 0;    // to here
  std::uint64_t now_ps = 0;    // at a switch: from here on it could leave it
};

class FabricObserver {
 public:
  virtual ~FabricObserver() = default;
  virtual void carried(const CarriedFrame& frame) = 0;
};

}  // namespace dryfly
