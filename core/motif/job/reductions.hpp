// Reductions in the switches, for skeletons: who has given a part, and what the NICs send each other up and down the
// tree of a group without the CPUs between.
//
// Models docs/model/reductions.md#what-the-fabric-reduces as core/nic/reductions.hpp does, of which this has the tree,
// the packets and the times: a NIC beside a switch stands for the switch's engine. A rank's part leaves by command
// where it is the last one to come, and else the NIC sends on by itself.
//
// Left out: arming, so that every reduction is as one of an armed tree is (docs/model/reductions.md#arming); the limit
// of eight at a time; packets that are lost; the class of low latency.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/motif/job/outlets.hpp"
#include "core/motif/job/placement.hpp"
#include "core/motif/job/records.hpp"
#include "core/unit/pool.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

class Reductions {
 public:
  class Listener {
   public:
    // What the record waits for has come to its rank's NIC, or will have: at the root all parts, then the result.
    virtual void finish_receive(std::uint32_t record, Instant at) = 0;

   protected:
    ~Listener() = default;
  };
  struct Times {
    Duration call;
    Duration command;
    Duration egress;
    Duration ingress;
    Duration frame;  // of a packet on a link
  };
  // The ranks that reduce together; `tag` tells groups apart that have as many, from the same one to the same one.
  struct Name {
    std::uint32_t tag;
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t size;
    auto operator<=>(const Name&) const = default;
  };

  Reductions(const Engine& engine, const Placement& placement, Records& records, Outlets& outlets, Listener& listener,
             Times times)
      : engine_(engine),
        placement_(placement),
        records_(records),
        outlets_(outlets),
        listener_(listener),
        times_(times) {}

  // The group of that name, whose tree is made when it is first asked for. Its root is the first member that is the
  // root of no other. SpecError: there is none.
  std::uint32_t group(const Name& name, const std::function<std::uint32_t(std::uint32_t)>& rank_at);
  std::uint32_t root(std::uint32_t group) const { return groups_[group].root; }

  // A rank gives its part of its next reduction. Complete: the result is here, or at the root the parts of all.
  Pending contribute(Rank& rank, std::uint32_t group, std::uint32_t place);
  // The root's CPU has its NIC send the result of the oldest reduction.
  Pending answer(Rank& root, std::uint32_t group);
  // A packet is where it goes, and a part is combined.
  void arrived(std::uint32_t message);

  // Of a packet, with its 32 bytes, as core/nic/legs.hpp has it.
  static constexpr Bytes packet_bytes{49};
  std::uint64_t packets() const { return packets_; }

 private:
  struct Place {
    Instant own{};     // its rank's part is at the NIC
    Instant others{};  // the last of its children's is
    std::uint32_t missing = 0;
    std::uint32_t record = no_record;
  };
  struct Reduction {
    std::uint32_t group = 0;
    std::uint32_t untold = 0;
    std::uint64_t sequence = 0;
    std::vector<Place> places;
  };
  struct Group {
    std::vector<std::uint32_t> members;  // ranks
    std::vector<std::uint32_t> parents;
    std::vector<std::vector<std::uint32_t>> children;
    std::vector<std::uint64_t> given;                  // parts, by place
    std::map<std::uint64_t, std::uint32_t> under_way;  // by sequence
    std::uint64_t answered = 0;
    std::uint32_t root = 0;
  };

  Pending await(Rank& rank, Leg leg);
  std::uint32_t begin(std::uint32_t group, std::uint64_t sequence);
  void part_came(std::uint32_t reduction, std::uint32_t place);
  void send(std::uint32_t reduction, Leg leg, std::uint32_t from, std::uint32_t to, Instant ready);
  void send_down(std::uint32_t reduction, std::uint32_t place, Instant ready);
  void tell(std::uint32_t reduction, std::uint32_t place, Instant at);

  const Engine& engine_;
  const Placement& placement_;
  Records& records_;
  Outlets& outlets_;
  Listener& listener_;
  const Times times_;
  std::map<Name, std::uint32_t> names_;
  std::set<std::uint32_t> roots_;  // ranks
  std::vector<Group> groups_;
  Pool<Reduction> reductions_;
  std::uint64_t packets_ = 0;
};

}  // namespace dryfly::motif
