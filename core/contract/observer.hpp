// Who watches the network: for recordings. The network tells what has happened and never asks; without an observer it
// looks at one pointer for each event.
#pragma once

#include <cstdint>

namespace dryfly {

// One piece (core/contract/network.hpp) on one link, told when its head (at a NIC: its tail) has come to the other end.
// No two pieces have a link at one time, but where the switch in front of it draws its latency anew for each: of two
// that are told in order the later one may then seem to have begun before the former was over.
struct CarriedPiece {
  std::uint32_t port = 0;   // the one that drives the link; NICs' ports follow those of the switches
  std::uint32_t piece = 0;  // names it while it is under way
  std::uint32_t bytes = 0;  // on the link, headers included
  bool acknowledgement = false;
  bool to_nic = false;
  std::uint64_t start_ps = 0;  // the link is occupied from here
  std::uint64_t end_ps = 0;    // to here
  std::uint64_t now_ps = 0;    // at a switch: from here on it could leave it
};

class NetworkObserver {
 public:
  virtual ~NetworkObserver() = default;
  virtual void carried(const CarriedPiece& piece) = 0;
};

}  // namespace dryfly
