// The way between a NIC and the memory of its end-points, as far as it differs from end-point to end-point: the NICs of
// a socket share what its PCIe gets from and to memory, and a NIC on another socket is further away.
//
// Models docs/model/host-costs.md#pcie-of-a-socket: the NICs of a socket move less together than their links carry.
// Every packet loads the bus, each way by itself, when it leaves or arrives, and the packets of all NICs take their
// turns. What arrives is in memory when the bus has carried it, which it does while the packet comes in. A NIC sends
// while it fetches, and fetches a little ahead of what it sends: while more than that waits for the bus it sends
// nothing. A way across sockets takes a latency each time: once for a command with its payload and for what arrives,
// three times where a payload is fetched for a command (doorbell, request, data), twice where it is for a Get. The
// doorbell comes from the rank's processor, all else goes to and from its memory, which may be on another socket. The
// link between two sockets carries payloads one after the other, whole: of those that leave one of each NIC in its
// turn, which is sent while it crosses; one that arrives crosses from when it has set out, as it comes in among others,
// and is in memory when the link has carried it. A NIC that is slow itself (docs/model/reliability.md#parts-of-nodes)
// has a lane of its own rate before the bus. What comes from a GPU's memory or goes there takes its turn on that one's
// link, too (GpuLinks), by the same rules as on the bus. Left out: that a NIC whose bus or link is behind holds up its
// own link; completions, which take the latency of the near NIC; commands and their completions on the bus.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/contract/memory.hpp"
#include "core/contract/network.hpp"
#include "core/nic/counter_bank.hpp"
#include "core/nic/fifo.hpp"
#include "core/nic/gpu_links.hpp"
#include "core/nic/nic.hpp"
#include "core/nic/translations.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

class HostPaths final : public HostBus {
 public:
  HostPaths(const NicSpec& spec, CounterBank& counters)
      : spec_(spec),
        counters_(counters),
        gpu_links_(spec),
        pcie_(spec.pcie_rate, spec.framing.payload_max),
        link_(spec.link_rate, spec.framing.payload_max),
        translations_(spec.translation, spec.link_rate, spec.framing.payload_max, counters) {}

  Translations& translations() { return translations_; }

  // Of an end-point.
  MemoryPath place(NicId nic, NodeId node, const MemoryPlace& host);
  bool shares_bus() const { return spec_.pcie_rate.bytes_per_s != 0; }
  // Whether any NIC has less from memory than its link carries.
  bool holds_up() const { return limits_hosts() || gpu_links_.any(); }
  // What payloads get of the links between the sockets of a node from now on, each way.
  void limit_crossing(NodeId node, Rate rate);
  // A payload is to cross from memory to its NIC, by MemoryPath::link_out. True: it is the first one that waits, and
  // somebody has to ask for it when the link is free.
  bool wait_to_cross(std::uint32_t link, const Transfer& transfer);
  Instant free_at(std::uint32_t link) const { return socket_links_[link].until; }
  // The next one, of each NIC in its turn, which the link carries from now on; there must be one.
  Transfer next_to_cross(std::uint32_t link, Instant now);
  bool has_waiting(std::uint32_t link) const { return socket_links_[link].waiting > 0; }
  // A payload that will cross to its memory sets out for its NIC; it crosses as it comes in, so not before.
  void sets_out(std::uint32_t handle, Instant now) { set_out_[handle] = now; }
  // It has waited for its turn since.
  void sets_out_now(std::uint32_t handle, Instant now) {
    if (const auto set_out = set_out_.find(handle); set_out != set_out_.end()) set_out->second = now;
  }
  // By how much that payload, whose last byte is at the NIC now, is late behind the link between the sockets.
  Duration crossing_lag(const MemoryPath& path, std::uint32_t handle, Bytes payload, Instant now);

  // Memories are named as CopyEnds has them.
  bool concerns(const Transfer& transfer) const override {
    return limits_hosts() || transfer.source_memory != 0 || transfer.target_memory != 0;
  }
  void took(NicId nic, std::uint8_t memory, Bytes payload, Instant now) override;
  void sends(NicId nic, std::uint8_t memory, Bytes payload, Instant now) override;
  Instant may_send(NicId nic) const override;

  std::uint32_t lane_of(NicId nic) const { return nic.value < lane_of_.size() ? lane_of_[nic.value] : none; }
  // By how much the last payload that came off the link is late in memory, seen from now.
  Duration arrival_lag(std::uint32_t lane, Instant now) const;
  // The same of a payload whose memory is known only now that all of it is here; as if it had been written while it
  // came, which took the longer the more such payloads the NIC took at a time.
  Duration writing_lag(NicId nic, std::uint8_t gpu, Bytes payload);

 private:
  // Nearly all packets are full ones, whose time is divided out once.
  class Pace {
   public:
    Pace(Rate rate, Bytes full)
        : rate_(rate), full_(full), full_time_(rate.bytes_per_s == 0 ? Duration{} : transmission_time(full, rate)) {}
    Duration time_of(Bytes size) const {
      if (size == full_ || rate_.bytes_per_s == 0) return full_time_;
      return transmission_time(size, rate_);
    }

   private:
    Rate rate_;
    Bytes full_;
    Duration full_time_;
  };
  struct Bus {
    std::uint64_t lanes = 0;
    // How far a NIC fetches ahead: in the time of two packets of each NIC, so that NICs which the bus has enough for do
    // not wait for each other's.
    Duration ahead;
    Instant to_memory_until;  // when it has carried all that has arrived
    Instant from_memory_until;
  };
  // Between two sockets of a node, one way.
  struct SocketLink {
    NodeId node;
    Rate rate;
    Instant until;                                         // when it has carried all that it was given
    std::vector<std::pair<NicId, Fifo<Transfer>>> of_nic;  // that wait
    std::size_t next = 0;                                  // whose turn it is
    std::size_t waiting = 0;                               // of all NICs
  };
  static constexpr std::size_t gpus_max = 16;
  // Of a NIC.
  struct Lane {
    std::uint32_t bus = 0;
    std::uint32_t counters = 0;  // where those of the NIC are
    Rate own_rate;               // of a slow NIC; 0: as much as the bus gives
    Instant own_to_memory_until;
    Instant own_from_memory_until;
    Instant there;  // when the last that arrived is in memory
    Instant sent;   // when the bus has carried what it has chosen to send
    // Until when it has been counted as waiting for the bus, each way.
    Instant waited_to_memory_until;
    Instant waited_from_memory_until;
    bool on_bus = false;  // else it is there for the memory of GPUs only
    NodeId node;
    std::uint8_t nic_gpu = 0;
    std::array<std::uint32_t, gpus_max + 1> gpu_links{};  // by GPU; GpuLinks::none: it has none, or has not used it
    Instant gpu_may_send;                                 // by the link of what it has chosen last
    // From the first to the last of the payloads that writing_lag was asked of, of those that came without a pause.
    Instant whole_from;
    Instant whole_until;
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  bool limits_hosts() const { return shares_bus() || !spec_.slow_nics.empty(); }
  void put_on_bus(Lane& lane, NicId nic, NodeId node, std::uint32_t socket);
  std::uint32_t gpu_link(Lane& lane, std::uint8_t gpu);
  std::uint32_t socket_link(NodeId node, std::uint32_t from, std::uint32_t to);
  // The NIC has something for the bus from `now` on, which is free at `free` only.
  void count_wait(const Lane& lane, Counter counter, Instant& counted_until, Instant now, Instant free);

  const NicSpec& spec_;
  CounterBank& counters_;
  GpuLinks gpu_links_;
  Pace pcie_;
  Pace link_;
  Translations translations_;
  std::vector<Lane> lanes_;
  std::vector<Bus> buses_;
  std::vector<SocketLink> socket_links_{1};  // the first stands for none
  std::map<std::tuple<NodeId, std::uint32_t, std::uint32_t>, std::uint32_t> socket_link_of_;  // from, to
  std::unordered_map<std::uint32_t, Instant> set_out_;                // by handle; looked up only
  std::map<NodeId, Rate> crossing_rates_;                             // of nodes where it is not the machine's
  std::map<std::pair<NodeId, std::uint32_t>, std::uint32_t> bus_of_;  // by node and socket
  std::vector<std::uint32_t> lane_of_;                                // by NIC
};

}  // namespace dryfly::nic
