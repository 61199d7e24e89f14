// End-points of the ranks: on which NIC each is, how its provider wants it, and what is left in the conductor when it
// closes: nothing of it may meet whoever opens it again.
#pragma once

#include <cstdint>
#include <vector>

#include "conductor/claims.hpp"
#include "conductor/command_queue.hpp"
#include "conductor/distances.hpp"
#include "conductor/memory_regions.hpp"
#include "conductor/open_command.hpp"
#include "conductor/places.hpp"
#include "conductor/rank.hpp"
#include "conductor/reductions.hpp"
#include "core/nic/nic.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

// What hangs on an end-point beside its NIC, and ends with it.
struct EndpointParts {
  OpenCommands& commands;
  CommandQueue& queue;
  Claims& claims;
  MemoryRegions& regions;
  Reductions& reductions;
  Distances& distances;
};

class Endpoints {
 public:
  // `served`: processes come and go, so nothing may pile up.
  Endpoints(Nics& nics, const Dragonfly& topology, std::vector<Rank>& ranks, const EndpointParts& parts, Places& places,
            bool served);

  bool is_open(EndpointId endpoint) const { return open_[endpoint.value]; }
  // Whether an end-point has ever had this address; it may have closed since.
  bool is_known(std::uint32_t address) const { return address < known_.size() && known_[address]; }

  void open(const OpenCommand& open);
  // An end-point that is opened again before the close of its first life had its turn: what is queued for that life is
  // void.
  void void_queued(EndpointId endpoint);
  void close(EndpointId endpoint);
  // The command's rank is bound elsewhere.
  void move(const OpenCommand& open);
  // Ranks have what they have of their nodes, and end-points are where these are, from that instant on.
  void settle_all(std::uint64_t from_ps);

 private:
  EndpointSettings settings_of(const OpenCommand& open);
  std::uint32_t place_on_nic(RankId rank);
  void forget_receives(EndpointId endpoint);
  void move_all(const Rank& rank);

  Nics& nics_;
  const Dragonfly& topology_;
  std::vector<Rank>& ranks_;
  EndpointParts parts_;
  Places& places_;
  bool served_;
  std::vector<std::uint32_t> places_on_nic_;  // by rank: how many with a lower number have the same NIC
  std::vector<bool> open_;                    // by address
  std::vector<std::uint32_t> nic_of_;         // by address, its number on the node
  std::vector<bool> known_;
};

}  // namespace dryfly
