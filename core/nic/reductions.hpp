// Reductions and barriers that the fabric carries out for a group of end-points. joins.hpp forms such groups.
//
// Models docs/model/reductions.md#what-the-fabric-reduces and docs/model/reductions.md#arming: each member gives the
// NIC one packet, reduction engines on the way to the root combine what comes in and send one packet on, the CPU at
// the root adds its own and lets the NIC send the result back down the tree. No other CPU takes part, with one
// exception: the engines have to be armed. The result of a reduction arms them for the next one with its number (of
// eight); before the first one, and when the arming has expired, the others give their part only when the root has
// sent an arming packet down, and then their CPUs do so at a poll.
//
// Rosetta's engines sit in the switches' ports. Here a member's NIC beside a switch stands for the engine of the
// switch: packets are ordinary transfers between NICs, so that load, faults and places count, and each level of the
// tree is longer by the way to that NIC and back (its edge link twice and its switch once more, some 370 ns). An engine
// works through its packets at once; each takes `reduction_latency`.
//
// Left out: engines that time out and send on what they have (the last part passes a level as quickly, since a level
// waits for nothing else), the root's timer that asks for everything again (a packet that is lost is sent again by the
// retry handler of its NIC), and the leaf's that reads the result from the root.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/nic/joins.hpp"
#include "core/nic/legs.hpp"
#include "core/nic/nic.hpp"
#include "core/nic/transport.hpp"
#include "core/unit/pool.hpp"

namespace dryfly::nic {

class Reductions {
 public:
  Reductions(Engine& engine, Transport& transport, Host& host, const NicSpec& spec)
      : engine_(engine), transport_(transport), host_(host), spec_(spec), legs_(transport), joins_(legs_, host) {}

  // The number of the group. Reductions may begin at once.
  std::uint32_t open(const GroupTree& tree);
  // No reduction of it is under way, and none comes.
  void close(std::uint32_t group);
  void join(const JoinCommand& command) { joins_.begin(command); }
  void contribute(const ContributeCommand& command);

  void arrived(Parcel parcel);
  void acknowledged(Parcel parcel) { legs_.acknowledged(parcel); }
  void failed(Parcel parcel, bool delivered);
  void worked(EndpointId at, const Work& work);

  void restart();
  // Nothing between two places; a reduction may still wait for members.
  bool at_rest() const { return legs_.at_rest(); }
  CollectiveTotals totals() const;

 private:
  struct Place {
    std::uint32_t missing = 0;  // parts that have not come, its own among them
    Token token = 0;
    bool contributed = false;
    bool by_dma = false;
    bool held = false;  // its part waits for the arming packet
    bool armed = false;
    bool landed = false;
  };
  struct Reduction {
    std::uint32_t group = 0;
    std::uint32_t life = 0;
    std::uint64_t sequence = 0;
    std::uint32_t unfinished = 0;  // members that have not been told
    bool needs_arming = false;
    std::vector<Place> places;
  };
  struct Group {
    GroupTree tree;
    std::vector<std::vector<std::uint32_t>> children;
    std::map<std::uint64_t, std::uint32_t> under_way;  // by sequence
    std::vector<Instant> armed_until;                  // by number of eight
    std::vector<std::uint64_t> told;                   // by member: reductions
    bool broken = false;                               // a part was lost for good
  };

  std::uint32_t begin(std::uint32_t group, std::uint64_t sequence);
  void give_part(std::uint32_t reduction, std::uint32_t place);
  void part_came(std::uint32_t reduction, std::uint32_t place, bool by_command);
  void ask_processor(const Reduction& reduction, std::uint32_t index, std::uint32_t place);
  void send_down(std::uint32_t reduction, std::uint32_t place, LegKind kind);
  void armed(std::uint32_t reduction, std::uint32_t place);
  void complete(std::uint32_t reduction);
  void landed(std::uint32_t reduction, std::uint32_t place);
  void fail(std::uint32_t reduction);
  void go_on(const Leg& leg);

  Leg leg(LegKind kind, std::uint32_t reduction, std::uint32_t place) const;
  void hold(LegKind kind, std::uint32_t reduction, std::uint32_t place, Duration time);
  void send(LegKind kind, std::uint32_t reduction, std::uint32_t from, std::uint32_t to);

  Engine& engine_;
  Transport& transport_;
  Host& host_;
  const NicSpec& spec_;
  std::vector<Group> groups_;
  Pool<Reduction> reductions_;
  Legs legs_;
  Joins joins_;
  std::uint32_t lives_ = 0;
  CollectiveTotals totals_;
};

}  // namespace dryfly::nic
