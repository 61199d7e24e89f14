// Where ranks are within their nodes, and what each has of its node by that.
//
// A rank is bound to hardware threads and to memories by its launcher or by itself (wire::NodePlace). Its memory is, of
// those that it is bound to, the nearest to its core, else the one beside its core. Ranks of a node are seated on
// cores: those with the fewest to choose from first, each on the one of its own with the fewest ranks; ranks of one
// core share its time. Of what the node's processors compute a bound rank has its cores, of the memory that it uses an
// even share among those that use it, and where that is on another socket, of the link between the sockets
// (socket_rate) an even share among the ranks that read across, of its half where payloads of NICs cross as well.
// Models docs/model/nodes.md#what-a-place-costs. Left out: memory that is interleaved or filled up, and that a core
// with two hardware threads gives two ranks more than one.
//
// Where cores are to each other says what copies between ranks cost (Nearness); ranks that are bound to one L3 region
// share its cache. Of what they copy through memory that they share it is mostly known whose it is
// (rank/node_accounts.hpp); else a rank copies as it does in the mean with the others of its node.
//
// As long as nobody on a node is bound its ranks have what they have without this: even shares.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "conductor/rank.hpp"
#include "core/contract/memory.hpp"
#include "core/spec/nearness.hpp"
#include "core/spec/spec.hpp"

namespace dryfly {

class Places {
 public:
  // `limit_crossing`: told what payloads get of the links between the sockets of a node, each way, where ranks read
  // across as well.
  using LimitCrossing = std::function<void(NodeId, Rate)>;
  Places(const Spec& spec, std::vector<Rank>& ranks, LimitCrossing limit_crossing);

  // The rank is bound so from now on.
  void take(Rank& rank, const wire::NodePlace& place);
  // Until one rank of a node sees what another has written.
  Duration latency(const Rank& writer, const Rank& reader) const {
    return near_.way(core_place(writer), core_place(reader)).latency;
  }
  // The run is over: ranks are where they last said, also those whose word no NIC has come to any more.
  void see_last();
  // What the rank's memory is to a NIC of its node.
  MemoryPlace memory_place(const Rank& rank, std::uint32_t nic) const;
  // Ranks of the node get their shares, from that instant on.
  void settle(NodeId node, std::uint64_t from_ps);
  void settle_all(std::uint64_t from_ps);

  static bool is_bound(const Rank& rank) { return has_processors(rank) || rank.seat.place.memories != 0; }
  static bool has_processors(const Rank& rank);
  // The NUMA domain that its memory is in.
  std::uint32_t memory_of(const Rank& rank) const;

 private:
  struct Domain {
    std::uint32_t socket = 0;
    std::uint32_t first_core = 0;
    std::uint32_t cores = 0;
    std::uint64_t bytes_per_s = 0;  // 0: not known
  };

  std::vector<std::uint32_t> cores_of(const Rank& rank) const;
  std::uint32_t domain_of(std::uint32_t core) const;
  std::uint32_t socket_of(const Rank& rank) const;
  bool reads_across(const Rank& rank) const;
  // Whether payloads of some NIC of its own cross between sockets.
  bool nics_cross(const Rank& rank) const;
  std::uint32_t nic_socket(std::uint32_t nic) const { return nic < nic_sockets_.size() ? nic_sockets_[nic] : 0; }
  std::uint8_t nic_gpu(std::uint32_t nic) const { return nic < nic_gpus_.size() ? nic_gpus_[nic] : 0; }
  void settle(NodeId node, const std::vector<Rank*>& ranks, std::uint64_t from_ps);
  CorePlace core_place(const Rank& rank) const {
    return has_processors(rank) ? near_.of_core(rank.seat.core, cores_) : near_.of_region(rank.region);
  }
  void give_copies(const Rank& rank, const std::vector<Rank*>& ranks, wire::NodeShare& share) const;
  void seat(const std::vector<Rank*>& ranks);
  void give_shares(NodeId node, const std::vector<Rank*>& ranks, std::uint64_t from_ps);

  std::vector<Rank>& ranks_;
  Nearness near_;
  LimitCrossing limit_crossing_;
  std::uint32_t cores_ = 0;
  std::uint32_t processors_ = 0;  // hardware threads
  std::vector<Domain> domains_;
  std::vector<std::uint32_t> nic_sockets_;  // by the NIC's number on its node
  std::vector<std::uint8_t> nic_gpus_;
  Rate socket_rate_;
  bool computes_;  // announced computing takes time, and with it what it reads across
};

}  // namespace dryfly
