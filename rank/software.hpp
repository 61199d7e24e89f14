// What the MPI library's own code costs a rank (docs/model/software.md). It runs between boundaries: where it is
// called, where it calls the provider or comes back from it, and where it returns. How many instructions it executes
// between two of them was counted (`dryfly mpi measure`), so each such interval has a price, and the clock moves by
// that.
//
// Lives in Self: the preload opens and closes an MPI call, the provider is what lies between. Intervals of a blocking
// call from one look that has found nothing to the next one cost nothing, for how often a library polls is no property
// of the machine (docs/decision/0003).
#pragma once

#include <atomic>
#include <cstdint>

#include "rank/software_account.hpp"

namespace dryfly::rank {

// What was called at a boundary, and behind a poll what it has found.
enum class Boundary : std::uint8_t {
  call,        // the MPI function itself: its entry, and its return
  inject,      // a send whose buffer may be used again at once
  send_short,  // a send that travels inside its command
  send_eager,
  send_long,  // by rendezvous
  receive,    // one posted
  peek,
  write,
  read,
  atomic,
  poll,     // before: a look at a completion queue; behind: it was empty
  sent,     // a poll has found that a send is complete
  arrived,  // a poll has found a message
  done,     // a poll has found something else
  counter,  // a look at a counter
};
inline constexpr const char* boundary_names[] = {"call",    "inject", "send_short", "send_eager", "send_long",
                                                 "receive", "peek",   "write",      "read",       "atomic",
                                                 "poll",    "sent",   "arrived",    "done",       "counter"};

constexpr bool is_look(Boundary at) { return at == Boundary::poll || at == Boundary::counter; }

// Of one interval. The second part counts for the bytes of the message at one of its two boundaries.
struct SoftwareCost {
  std::uint32_t ps;  // the highest bit: assumed, for this kind of interval was not measured
  std::uint32_t ps_per_kib;
};
inline constexpr std::uint32_t cost_is_assumed = std::uint32_t{1} << 31;

struct SoftwareRow {
  char call[48];                                       // "MPI_Send"; of the first row empty: for calls without a row
  SoftwareCost costs[boundary_count][boundary_count];  // [from][to]
};

// The file that DRYFLY_SOFTWARE names, in the byte order of the machine; python/dryfly/mpi/software.py writes it.
struct SoftwareTable {
  char format[8];
  std::uint64_t row_count;
  SoftwareRow rows[1];
};
inline constexpr char software_table_format[8] = {'d', 'f', 's', 'o', 'f', 't', '0', '1'};

// How the rank tells the process that counts its instructions (app/count_main.cpp): by a trap, with the magic number in
// rax, one of these in rdi and the address of Software::executed in rsi.
inline constexpr std::uint64_t counter_magic = 0x6466636f756e7431;
enum class CounterCall : std::uint64_t {
  begin,  // the library is about to be called
  end,    // it has returned
  pause,  // until `resume` it runs at full speed
  resume,
};

struct Software {
  std::atomic<const SoftwareRow*> row;  // of the outermost MPI call; null outside of it, and if nothing is charged
  std::atomic<std::uint32_t> from;      // Boundary
  std::atomic<std::uint64_t> from_bytes;
  std::atomic<std::uint64_t> charged_ps;
  std::atomic<std::uint64_t> assumed_ps;  // of that
  std::atomic<SoftwareAccount*> account;  // of the outermost MPI call, where what it costs is told apart by kind
  // Null but under `dryfly mpi measure`: instructions of the library so far, by the process that counts them
  // (app/count_main.cpp); what is to be told of each interval; and what, when a poll has found something.
  std::atomic<std::uint64_t> executed;
  std::atomic<void (*)(Boundary from, Boundary to, std::uint64_t bytes)> interval;
  std::atomic<void (*)()> found_something;

  bool is_charged() const { return row.load(std::memory_order_relaxed) != nullptr; }

  // The library's code ends here; what it has cost, in picoseconds. `waits`: the call is a blocking one.
  std::uint64_t reach(Boundary to, std::uint64_t bytes, bool waits) {
    const SoftwareRow* at = row.load(std::memory_order_relaxed);
    if (at == nullptr) return 0;
    const auto last = static_cast<Boundary>(from.load(std::memory_order_relaxed));
    const std::uint64_t last_bytes = from_bytes.load(std::memory_order_relaxed);
    const std::uint64_t most = last_bytes > bytes ? last_bytes : bytes;
    if (const auto tell = interval.load(std::memory_order_relaxed); tell != nullptr) tell(last, to, most);
    if (waits && is_look(last) && is_look(to)) return 0;
    const SoftwareCost& cost = at->costs[static_cast<std::uint32_t>(last)][static_cast<std::uint32_t>(to)];
    const std::uint64_t ps = (cost.ps & ~cost_is_assumed) + most * cost.ps_per_kib / 1024;
    charged_ps.fetch_add(ps, std::memory_order_relaxed);
    if ((cost.ps & cost_is_assumed) != 0) assumed_ps.fetch_add(ps, std::memory_order_relaxed);
    if (SoftwareAccount* of = account.load(std::memory_order_relaxed); of != nullptr) {
      of->add(static_cast<std::uint8_t>(last), static_cast<std::uint8_t>(to), most, ps);
    }
    return ps;
  }

  // It goes on from here.
  void leave(Boundary at, std::uint64_t bytes) {
    from.store(static_cast<std::uint32_t>(at), std::memory_order_relaxed);
    from_bytes.store(bytes, std::memory_order_relaxed);
  }
};

}  // namespace dryfly::rank
