#include "conductor/roster.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/spec/fields.hpp"

namespace dryfly {

namespace {

// Whether this process may reach the memory of that one: address 0 is never there, so the attempt fails either way,
// and how it fails tells.
bool may_reach_memory_of(std::uint32_t pid) {
  char byte = 0;
  const iovec here{&byte, 1};
  const iovec there{nullptr, 1};
  return process_vm_readv(static_cast<pid_t>(pid), &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
}

std::string name_of(const Rank& rank) { return std::to_string(rank.id.value) + " " + std::to_string(rank.process.pid); }

}  // namespace

Roster::Roster(const Parts& parts, const Spec& spec, StatusLine attach_line, const std::string& channel, int life_line)
    : of_(parts), spec_(spec), attach_line_(attach_line), door_(channel, life_line, [this] { of_.inbox.ring(); }) {
  for (std::uint32_t index = 0; index < of_.ranks.size(); ++index) place(of_.ranks[index], index);
}

void Roster::place(Rank& rank, std::uint32_t index) {
  const Dragonfly& topology = of_.topology;
  rank.id = RankId{index};
  rank.page = &of_.segment.page(rank.id);
  rank.commands.ring = of_.segment.command_ring(rank.id);
  rank.events.ring = of_.segment.event_ring(rank.id);
  rank.node = NodeId{
      static_cast<std::uint32_t>(spec_.number_between(0, topology.node_count() - 1, fields::run_rank_node, {index}))};
  rank.nic_index = static_cast<std::uint32_t>(
      spec_.number_between(0, topology.nics_per_node(rank.node) - 1, fields::run_rank_nic, {index}));
  if (spec_.has(fields::run_rank_socket, {index})) rank.socket = spec_.small(fields::run_rank_socket, {index});
  if (spec_.has(fields::run_rank_region, {index})) rank.region = spec_.small(fields::run_rank_region, {index});
  of_.batons.seat(rank);
}

void Roster::serve_visits() {
  for (const Visit& visit : door_.take_visits()) {
    if (visit.kind == Visit::Kind::hello) {
      admit(visit);
    } else {
      process_ended(visit.rank, visit.pid);
    }
  }
}

void Roster::admit(const Visit& visit) {
  Rank* rank = nullptr;
  const std::string reason = refusal_of(visit.hello, rank);
  if (!reason.empty()) {
    wire::Welcome refusal{};
    refusal.magic = wire::segment_magic;
    refusal.version = wire::version;
    std::strncpy(refusal.reason, reason.c_str(), sizeof refusal.reason - 1);
    return door_.welcome(visit.socket, refusal, of_.segment.descriptor());
  }
  seat(*rank, visit);
  const std::string node_name = spec_.text(fields::run_node_name, {rank->node.value});
  door_.welcome(visit.socket, welcome_to(*rank, node_name), of_.segment.descriptor());
  door_.watch(rank->id.value, rank->process.pid);
  of_.status.say("attached " + name_of(*rank));
  attach_line_.say("attached " + name_of(*rank));
  if (is_served()) of_.status.say("joined " + name_of(*rank) + " " + node_name);
}

std::string Roster::refusal_of(const wire::Hello& hello, Rank*& seat) {
  if (hello.version != wire::version) return "the provider is of another version of dryfly";
  if (is_served() != (hello.rank == wire::any_rank)) return "a served fabric has no ranks, and a run has only these";
  const std::string room = std::to_string(of_.ranks.size());
  if (is_served()) {
    if (!spec_.has(fields::run_node_name, {hello.node})) {
      return "node " + std::to_string(hello.node) + " is none of the nodes that this fabric serves";
    }
    seat = seat_on(NodeId{hello.node});
    return seat == nullptr ? "the fabric has room for " + room + " processes, all taken" : std::string();
  }
  if (hello.rank >= of_.ranks.size()) return "the run has " + room + " ranks, numbered from 0";
  seat = &of_.ranks[hello.rank];
  if (seat->state == RankState::absent) return {};
  return "process " + std::to_string(seat->process.pid) + " is this rank already";
}

void Roster::seat(Rank& rank, const Visit& visit) {
  const wire::Hello& hello = visit.hello;
  if (is_served()) prepare_seat(rank);
  if (!may_reach_memory_of(hello.pid)) of_.segment.header().cross_memory_allowed = 0;
  rank.process.pid = hello.pid;
  rank.process.libmpi = hello.libmpi_path;
  rank.process.libfabric = hello.libfabric_path;
  rank.process.program = hello.program_path;
  rank.process.line = visit.socket;
  of_.clock.set_state(rank, is_served() ? RankState::away : RankState::starting, never.ps);
}

wire::Welcome Roster::welcome_to(const Rank& rank, const std::string& node_name) const {
  wire::Welcome welcome{};
  welcome.magic = wire::segment_magic;
  welcome.version = wire::version;
  welcome.segment_bytes = of_.segment.bytes();
  welcome.rank_count = of_.segment.rank_count();
  welcome.accepted = 1;
  welcome.rank = rank.id.value;
  welcome.node = rank.node.value;
  welcome.nics_per_node = of_.topology.nics_per_node(rank.node);
  welcome.nic_index = rank.nic_index;
  for (const Rank& other : of_.ranks) {
    if (other.node != rank.node || (is_served() && other.process.tenancy == 0)) continue;
    if (other.id < rank.id) ++welcome.rank_on_node;
    ++welcome.ranks_on_node;
  }
  std::strncpy(welcome.node_name, node_name.c_str(), sizeof welcome.node_name - 1);
  return welcome;
}

// The lowest seat, so that addresses depend on nothing but who came before. A seat that was taken once stays on its
// node, because messages to it may still be under way.
Rank* Roster::seat_on(NodeId node) {
  Rank* fresh = nullptr;
  std::uint32_t local = 0;
  for (Rank& rank : of_.ranks) {
    const bool used = rank.process.tenancy != 0;
    if (used && rank.node == node) {
      if (rank.state == RankState::gone && !of_.translator.has_commands(rank.id)) return &rank;
      ++local;
    }
    if (!used && fresh == nullptr) fresh = &rank;
  }
  if (fresh == nullptr) return nullptr;
  fresh->node = node;
  fresh->nic_index = local % of_.topology.nics_per_node(node);
  return fresh;
}

void Roster::prepare_seat(Rank& rank) {
  auto& page = *rank.page;
  ++rank.process.tenancy;
  of_.translator.prepare_seat(rank);
  page.command_head.store(0);
  page.command_tail.store(0);
  page.event_head.store(0);
  page.event_tail.store(0);
  page.asleep.store(0);
  page.wants_byte.store(0);
  page.all_ended.store(0);
  page.clock_ps.store(0);
  page.progress.has_herald.store(0);
  page.progress.reached_ps.store(0);
  page.progress.looks_for_ps.store(wire::far_future);
  page.service.done.store(page.service.request.load());
  page.copies_done.store(
      rank.events.copies.count_of_all());  // also those ordered since the last process here has ended
  rank.commands.tail = rank.events.head = 0;
  rank.gate.ticket = page.gate.count.load();
  page.released.store(rank.gate.ticket << wire::nudge_bits);
  rank.gate.at_ps = rank.gate.rejoin_ps = 0;
  rank.gate.outside = rank.gate.only_news = rank.gate.heeds_news = false;
  page.news.tail.store(page.news.head.load());
  rank.process.cut_off = false;
  rank.seat.nics = 0;
}

void Roster::cut_off(Rank& rank, const char* reason) {
  if (rank.process.cut_off) return;
  rank.process.cut_off = true;
  if (rank.state != RankState::gone) of_.clock.set_state(rank, RankState::away, never.ps);
  of_.batons.forget(rank);
  of_.status.say("damaged " + name_of(rank) + " " + reason);
  if (is_served()) {
    shutdown(rank.process.line, SHUT_RDWR);
  } else {
    of_.watchdog.give_up();
  }
}

void Roster::process_ended(std::uint32_t index, std::uint32_t pid) {
  Rank& rank = of_.ranks[index];
  if (rank.process.pid != pid) return;
  if (is_served()) return seat_ended(rank);
  of_.clock.set_state(rank, RankState::gone, never.ps);
  of_.delivery.flush_waiters(rank);
  of_.batons.forget(rank);
  if (!of_.clock.has_ended()) of_.watchdog.give_up();  // the launcher ends the job and says why
}

void Roster::seat_ended(Rank& rank) {
  of_.clock.set_state(rank, RankState::gone, never.ps);
  of_.translator.abandon(rank);
  rank.page->copies_done.store(rank.events.copies.count_of_all());  // whoever waited for a copy by it waits no longer
  of_.delivery.flush_waiters(rank);
  of_.delivery.forget(rank);
  if (rank.process.line >= 0) close(rank.process.line);
  rank.process.line = -1;
  of_.holders.forget(rank.id);
  of_.status.say("left " + name_of(rank));
}

}  // namespace dryfly
