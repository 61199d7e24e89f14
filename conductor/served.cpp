// A served fabric (dryfly serve): processes join a node and leave at any time, and virtual time goes on whether or not
// those that are there come to the provider. The rules, and why they are so: docs/decision/0007-a-served-fabric.md.
#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "conductor/conductor.hpp"

namespace dryfly {

namespace {

using namespace std::chrono_literals;
constexpr auto look_interval = 1ms;
constexpr auto asleep_for = 5ms;
constexpr std::uint64_t cpu_ns_max = 50'000'000;
constexpr auto pace_credit_max = 1ms;

struct Threads {
  bool all_asleep = true;
  std::uint64_t cpu_ns = 0;
};

// From a thread's folder in /proc: the command name is in parentheses and may hold anything; behind it is the state.
void add_thread(const std::string& folder, Threads& threads) {
  std::string text;
  std::getline(std::ifstream(folder + "/stat"), text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return;  // it has ended
  if (std::strchr("STtZX", text[name_end + 2]) == nullptr) threads.all_asleep = false;
  std::uint64_t cpu_ns = 0;
  std::ifstream(folder + "/schedstat") >> cpu_ns;
  threads.cpu_ns += cpu_ns;
}

Threads threads_of(std::uint32_t pid) {
  Threads threads;
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return threads;
  while (const dirent* entry = readdir(entries)) {
    if (entry->d_name[0] != '.') add_thread(folder + "/" + entry->d_name, threads);
  }
  closedir(entries);
  return threads;
}

}  // namespace

void Conductor::open_fabric() {
  auto& header = segment_.header();
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  header.epoch_ps =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count());
  started_ = true;
  paced_at_ = WallClock::now();
  translator_.tally().start(start_);
}

// The lowest seat, so that addresses depend on nothing but who came before. A seat that was taken once stays on its
// node, because messages to it may still be under way.
Rank* Conductor::seat_on(NodeId node) {
  Rank* fresh = nullptr;
  std::uint32_t local = 0;
  for (Rank& rank : ranks_) {
    const bool used = rank.process.tenancy != 0;
    if (used && rank.node == node) {
      if (rank.state == RankState::gone && !translator_.has_commands(rank.id)) return &rank;
      ++local;
    }
    if (!used && fresh == nullptr) fresh = &rank;
  }
  if (fresh == nullptr) return nullptr;
  fresh->node = node;
  fresh->nic_index = local % topology_.nics_per_node(node);
  return fresh;
}

void Conductor::prepare_seat(Rank& rank) {
  auto& page = *rank.page;
  ++rank.process.tenancy;
  page.command_head.store(0);
  page.command_tail.store(0);
  page.event_head.store(0);
  page.event_tail.store(0);
  page.asleep.store(0);
  page.wants_byte.store(0);
  page.all_ended.store(0);
  page.clock_ps.store(0);
  page.service_done.store(page.service_request.load());
  page.copies_done.store(rank.events.copies_ordered);  // also those ordered since the last process here has ended
  rank.commands.tail = rank.events.head = 0;
  rank.gate.ticket = page.gate_request.load();
  page.released.store(rank.gate.ticket << wire::nudge_bits);
  rank.gate.at_ps = rank.gate.rejoin_ps = 0;
  rank.gate.outside = false;
  rank.process.cut_off = false;
}

void Conductor::seat_ended(Rank& rank) {
  set_state(rank, RankState::gone, never.ps);
  translator_.abandon(rank);
  rank.page->copies_done.store(rank.events.copies_ordered);  // whoever waited for a copy by it waits no longer
  flush_waiters(rank);
  for (const PendingEvent& pending : rank.events.overflow) drop(pending);
  rank.events.overflow.clear();
  if (rank.process.line >= 0) close(rank.process.line);
  rank.process.line = -1;
  stalls_[rank.id.value] = {};
  status_.say("left " + std::to_string(rank.id.value) + " " + std::to_string(rank.process.pid));
}

void Conductor::drop(const PendingEvent& pending) {
  if ((pending.event.flags & wire::event_flag::payload_arena) == 0) return;
  wire::Arena::free(segment_.base(), pending.event.arena_offset);
}

// To a process that sleeps in poll() on its socket.
void Conductor::wake_sleeper(Rank& rank) {
  if (rank.page->wants_byte.exchange(0) == 0 || rank.process.line < 0) return;
  const char byte = 0;
  [[maybe_unused]] const auto sent = send(rank.process.line, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Virtual time that passes while nothing is under way passes no faster than on the wall: a new process, or one that is
// outside, may be about to act, and a time-out of those that wait means what it says.
Instant Conductor::paced(Instant limit) {
  const auto now = WallClock::now();
  const auto credit = std::min<WallClock::duration>(now - paced_at_, pace_credit_max);
  paced_at_ = now;
  if (engine_.next() != never || limit == never) return limit;
  const auto credit_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(credit).count();
  const Instant allowed = processed_until_ + Duration{static_cast<std::uint64_t>(credit_ns) * 1000};
  return std::min(limit, allowed);
}

// How long the conductor may sleep: until the pace lets the next waiting process go on, or until the next look at those
// that hold virtual time.
long Conductor::served_nap_ns() {
  constexpr long longest_ns = 20'000'000;
  constexpr long look_ns = 1'000'000;
  long nap = running_ != 0 ? look_ns : longest_ns;
  if (running_ == 0 && !by_instant_.empty()) {
    const std::uint64_t next = by_instant_.begin()->first;
    const std::uint64_t ahead = next > visible_until() ? (next - visible_until()) / 1000 : 0;
    nap = std::min<long>(nap, static_cast<long>(std::min<std::uint64_t>(ahead, look_ns)) + 1);
  }
  return nap;
}

// Who holds virtual time and does not come to the provider is let go: one that has slept in the kernel for a while, all
// of its threads, and one that has computed for long (or asks a
// socket again and again).
void Conductor::look_at_holders() {
  const auto now = WallClock::now();
  if (now - last_check_ < look_interval) return;
  last_check_ = now;
  for (Rank& rank : ranks_) {
    if (rank.state != RankState::running) continue;
    Stall& stall = stalls_[rank.id.value];
    const auto& page = *rank.page;
    const std::uint64_t mark = page.gate_request.load() + page.command_head.load() + page.clock_ps.load();
    const Threads threads = threads_of(rank.process.pid);
    if (mark != stall.call_count || stall.since == WallClock::duration{}) {
      stall = {.cpu_ticks = threads.cpu_ns, .call_count = mark, .since = now.time_since_epoch()};
      continue;
    }
    const bool computes = threads.cpu_ns - stall.cpu_ticks >= cpu_ns_max;
    if ((threads.all_asleep && now.time_since_epoch() - stall.since >= asleep_for) || computes) let_go(rank);
  }
}

// Word first, then a last look: a process that enters the provider meanwhile either is seen here or sees the word.
void Conductor::let_go(Rank& rank) {
  auto& page = *rank.page;
  page.away.store(1, std::memory_order_seq_cst);
  if (page.gate_request.load(std::memory_order_seq_cst) != rank.gate.ticket ||
      page.command_head.load(std::memory_order_seq_cst) != rank.commands.tail) {
    page.away.store(0, std::memory_order_seq_cst);
    return;
  }
  ++gates_.let_go;
  set_state(rank, RankState::away, never.ps);
}

}  // namespace dryfly
