// Between the wire and the NICs: commands of the ranks become commands of core/nic at the instant at which they
// reach the NIC, and what the NICs report becomes events for the ranks. Keeps the open commands, the memory regions
// and the payloads' whereabouts. Knows nothing of who may run.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "conductor/fences.hpp"
#include "conductor/groups.hpp"
#include "conductor/memory.hpp"
#include "conductor/open_command.hpp"
#include "conductor/rank.hpp"
#include "conductor/scrutiny.hpp"
#include "conductor/segment.hpp"
#include "conductor/tally.hpp"
#include "core/engine/engine.hpp"
#include "core/nic/nic.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

// Who is told that a rank has a new event.
class EventOutlet {
 public:
  virtual ~EventOutlet() = default;
  virtual void emit(RankId rank, PendingEvent&& pending) = 0;
  // A rank's command has ended in an error because nothing gets through to the other.
  virtual void unreachable(RankId rank, RankId other) = 0;
  // A NIC has just changed memory of the rank's node.
  virtual void memory_changed(RankId rank) = 0;
  // What the rank has put into its ring is no command, for this reason.
  virtual void damaged(RankId rank, const char* reason) = 0;
};

class Translator final : public Handler, public Host {
 public:
  Translator(Engine& engine, const Dragonfly& topology, Segment& segment, std::vector<Rank>& ranks, EventOutlet& outlet,
             Duration command_latency, Duration completion_latency);

  // Two-step construction: the NICs need their host, the host needs its NICs.
  void connect(Nics& nics) { nics_ = &nics; }

  // By the NIC's number on its node.
  void place_nics(std::vector<std::uint32_t> sockets) { nic_sockets_ = std::move(sockets); }

  // Takes every command out of the rank's ring; each reaches the NIC command_latency after its stamp, or now if
  // that has passed (only outside virtual time).
  void drain(Rank& rank);

  // The process that was this rank has ended: what it had issued takes its course, then its end-points close.
  // Its place can be taken again when it has no commands left.
  void abandon(Rank& rank);

  Tally& tally() { return tally_; }
  // Engine events for commands that there have been, and those that are still to come.
  std::uint64_t events_scheduled() const { return events_scheduled_; }
  std::uint64_t events_pending() const { return events_scheduled_ - events_handled_; }

  void handle(dryfly::Event event) override;
  void fetch(dryfly::Event event, unsigned stage) const override;
  void sent(EndpointId source, Token send) override;
  void received(const Received& received) override;
  void send_failed(EndpointId source, Token send, int error) override;
  void receive_failed(const Received& received, int error) override;
  void peeked(const Peeked& peeked) override;
  void cancelled(EndpointId at, Token receive) override;
  void dropped(Token send) override;
  int apply(Token rma) override;
  void rma_done(EndpointId source, Token rma, int error) override;
  void needs_processor(EndpointId at, const Work& work) override;
  void rma_delivered(const RmaCommand& command, bool on_node, std::uint32_t switch_hops) override;
  void joined(Token join, std::uint32_t member, int error) override;
  void reduced(Token part, int error) override;

 private:
  struct AskedWork {
    std::uint32_t endpoint;
    std::uint64_t kind, item, life, count;
    auto operator<=>(const AskedWork&) const = default;
  };
  struct Region {
    std::uint64_t base;
    std::uint64_t length;
    bool tells;
  };

  void open_endpoint(std::uint32_t slot, const OpenCommand& open);
  EndpointSettings settings_of(const OpenCommand& open);
  std::uint32_t place_on_nic(RankId rank);
  void execute_work_done(std::uint32_t slot, const OpenCommand& open);
  void close_endpoint(EndpointId endpoint);
  void forget_receives(Rank& rank, EndpointId endpoint);
  void end_first_life(Rank& rank, EndpointId endpoint);
  bool reachable(std::uint32_t address) const { return address < known_.size() && known_[address]; }
  bool is_open(const OpenCommand& open) const { return ranks_[open.rank.value].endpoints_open[open.command.endpoint]; }
  const char* fault_of(const Rank& rank, const wire::Command& command, std::uint64_t room, const char* payload) const;
  void refuse_command(std::uint32_t slot, const char* reason);
  void schedule_head(Rank& rank);
  void execute(std::uint32_t slot);
  bool held_back(std::uint32_t slot);
  void finished(EndpointId source);
  void execute_send(std::uint32_t slot, OpenCommand& open);
  void refuse_send(std::uint32_t slot);
  void execute_receive(std::uint32_t slot, OpenCommand& open);
  void execute_peek(std::uint32_t slot, OpenCommand& open);
  void execute_cancel(std::uint32_t slot, OpenCommand& open);
  void execute_rma(std::uint32_t slot, OpenCommand& open);
  // Groups and their reductions: reductions.cpp.
  void execute_join(std::uint32_t slot, OpenCommand& open);
  void execute_contribution(std::uint32_t slot, OpenCommand& open);
  void begin_join(Token join);
  void execute_leave(std::uint32_t slot, const OpenCommand& open);
  void leave_group(std::uint64_t key, std::uint32_t member);
  void leave_groups(EndpointId endpoint);
  void emit(RankId rank, PendingEvent&& pending);
  PendingEvent event_for(const OpenCommand& open, wire::EventKind kind) const;
  void attach_payload(PendingEvent& pending, OpenCommand& send, std::uint64_t place_length, RankId receiver);
  void free_payload(OpenCommand& open);
  void finish_send(Token token, OpenCommand& open);
  int apply_to(OpenCommand& open, const Region& region, std::uint64_t bytes);
  void tell_of_access(const OpenCommand& open, std::uint64_t bytes, wire::EventKind kind);
  int apply_write(OpenCommand& open, RankId target, std::uint64_t address);
  int apply_read(OpenCommand& open, RankId target, std::uint64_t address);
  int apply_atomic_on(OpenCommand& open, RankId target, std::uint64_t address);
  std::byte* payload_bytes(OpenCommand& open);
  std::byte* result_bytes(OpenCommand& open, std::uint64_t bytes);
  Rank& rank_of(EndpointId endpoint) { return ranks_[wire::address_rank(endpoint.value)]; }

  Engine& engine_;
  const Dragonfly& topology_;
  Segment& segment_;
  std::vector<Rank>& ranks_;
  EventOutlet& outlet_;
  Duration command_latency_;
  Duration completion_latency_;
  Nics* nics_ = nullptr;
  std::vector<std::uint32_t> nic_sockets_;
  wire::Arena arena_;
  RankMemory memory_;
  OpenCommands commands_;
  Tally tally_;
  Scrutiny scrutiny_;
  Fences fences_;
  Groups groups_;
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, Region>> regions_;  // by end-point, then by key
  std::vector<std::uint32_t> places_on_nic_;  // by rank: how many with a lower number have the same NIC
  std::vector<bool> known_;                   // end-points that have ever been opened
  std::multiset<AskedWork> asked_work_;       // of the ranks' CPUs, and not yet answered
  std::uint64_t events_scheduled_ = 0;
  std::uint64_t events_handled_ = 0;
};

}  // namespace dryfly
