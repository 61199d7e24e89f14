// Triggered operations: commands that wait in the NIC until a counter has come to a threshold, and the counters, which
// the NIC moves when operations of theirs are complete (docs/model/nic-protocols.md#triggered-operations). The CPU has
// no part in it. A counter is a process's own and is known by the number that its provider gave it.
//
// What waits takes an entry, of which a process has so many; further commands with a trigger wait for an entry, in
// order.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "conductor/due.hpp"
#include "conductor/open_command.hpp"
#include "core/engine/engine.hpp"

namespace dryfly {

class Triggers {
 public:
  // Of the service that a process has if no other is made for it.
  static constexpr std::uint32_t usual_entries = 504;

  Triggers(Engine& engine, OpenCommands& commands, std::size_t entries = usual_entries)
      : engine_(engine), commands_(commands), entries_(entries) {}

  // A command with a trigger is at its NIC: whether it waits.
  bool holds(std::uint32_t slot);
  // Something that this counter counts is complete; 0: none does.
  void count(RankId rank, std::uint32_t counter) {
    if (counter != 0) add(rank, counter, 1);
  }
  // An operation is, whose process may have left its rank to another.
  void count(const OpenCommand& done) {
    if (done.command.counter != 0 && done.tenancy == states_[done.rank.value].tenancy)
      count(done.rank, done.command.counter);
  }
  void add(RankId rank, std::uint32_t counter, std::uint64_t value);
  void set(RankId rank, std::uint32_t counter, std::uint64_t value);
  std::uint64_t value(RankId rank, std::uint32_t counter) const;
  // The rank's oldest command whose counter is there, which waits no more; no_slot.
  std::uint32_t take_due(RankId rank);
  // The command that waits with this context, which waits no more; no_slot.
  std::uint32_t take_out(RankId rank, std::uint64_t context);
  // An end-point closes: what of it has waited.
  std::vector<std::uint32_t> take_all(EndpointId endpoint);
  // Commands of the rank that wait for an entry now.
  std::uint64_t without_entry(RankId rank) const;
  // How many have come to a NIC that had no entry left for them.
  std::uint64_t entries_missed() const { return entries_missed_; }
  // The most that a process has had waiting, with an entry and without.
  std::size_t waiting_max() const { return waiting_max_; }
  std::size_t entries() const { return entries_; }
  // Another process is the rank from now on: its counters begin at 0. Nothing waits any more.
  void begin(RankId rank, std::uint32_t tenancy) { states_[rank.value] = State{.tenancy = tenancy}; }

  void event_handled() { ++events_handled_; }
  std::uint64_t events_scheduled() const { return events_scheduled_; }
  std::uint64_t events_pending() const { return events_scheduled_ - events_handled_; }

 private:
  // Of a rank.
  struct State {
    std::uint32_t tenancy = 0;
    std::unordered_map<std::uint32_t, std::uint64_t> counters{};
    std::deque<std::uint32_t> waiting{};  // slots, in the order in which they came; the first `entries_` have entries
  };
  bool is_due(const State& state, std::uint32_t slot) const;
  void look(RankId rank, const State& state);

  Engine& engine_;
  OpenCommands& commands_;
  std::size_t entries_;
  std::unordered_map<std::uint32_t, State> states_;  // by rank; looked up only
  std::uint64_t entries_missed_ = 0;
  std::size_t waiting_max_ = 0;
  std::uint64_t events_scheduled_ = 0;
  std::uint64_t events_handled_ = 0;
};

}  // namespace dryfly
