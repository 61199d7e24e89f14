// Another carriage behind the PCIe of the nodes: what the NICs of a socket share each way, where the spec has such a
// rate (docs/model/nodes.md). A load that the bus holds up leaves its NIC later, and is in memory later. A single
// packet waits for other such, and for one packet of each longer load: NICs take turns packet by packet. A NIC that is
// slow itself has a lane of its own before the bus.
//
// Left out: the link between sockets, as a rank is taken to be on its NIC's. The networks of the levels `packet` and
// `flow` have a bus of their own (network_carriage.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/motif/job/backlog.hpp"
#include "core/motif/job/carriage.hpp"
#include "core/motif/job/wires.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly::motif {

class BusCarriage final : public Carriage {
 public:
  // `inner` answers at once.
  BusCarriage(const Spec& spec, const Dragonfly& topology, std::unique_ptr<Carriage> inner);
  // Whether the machine has such a bus.
  static bool is_in(const Spec& spec);

  Bytes part() const override { return inner_->part(); }
  std::optional<Carried> carry(const Load& load) override;
  std::optional<Duration> least_way() const override { return inner_->least_way(); }
  Instant leave(Load& load) override;
  Carried bring(const Load& load) override;
  void prefetch(const Load& load) const override { inner_->prefetch(load); }

 private:
  // One way.
  struct Lane {
    Backlog all;
    Backlog packets;  // loads of a single packet
  };
  // Loads that leave and those that come may be two threads' (core/motif/job/porter.hpp), so that each way has a line
  // of the cache.
  struct Bus {
    alignas(64) Lane out;
    alignas(64) Lane in;
  };
  struct Pace {
    Rate rate;  // 0: all that NICs want
    std::uint64_t part_ps = 0;
    std::uint64_t packet_ps = 0;
  };
  struct SlowNic {
    Pace pace;
    Bus lanes;
  };
  Pace pace_of(Rate rate) const;
  // How long the load waits that comes then.
  static Duration cross(Lane& lane, Instant at, Bytes size, bool is_packet, const Pace& pace);
  Duration cross(NicId nic, Lane Bus::* way, Instant at, Bytes size);
  Bus& bus_of(NicId nic);
  void go_out(Load& load) { load.ready = load.ready + cross(load.from, &Bus::out, load.ready, load.size); }
  void come_in(const Load& load, Carried& times);
  // By how much longer than its link the slower one of both NICs is at that load by itself.
  Duration longer(const Load& load) const;

  std::unique_ptr<Carriage> inner_;
  const Dragonfly& topology_;
  const Wires wires_;
  Bytes packet_;
  Pace pace_;
  std::map<NicId, SlowNic> slow_;
  std::vector<std::uint32_t> nic_sockets_;  // by the NIC's number on its node
  std::uint32_t sockets_ = 1;
  LargeVector<Bus> buses_;  // of each node's sockets
};

}  // namespace dryfly::motif
