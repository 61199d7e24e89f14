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
  memory,   // a copy to or from memory that ranks of a node share
};
inline constexpr const char* boundary_names[] = {
    "call", "inject", "send_short", "send_eager", "send_long", "receive", "peek",    "write",
    "read", "atomic", "poll",       "sent",       "arrived",   "done",    "counter", "memory"};

constexpr bool is_look(Boundary at) { return at == Boundary::poll || at == Boundary::counter; }
constexpr bool is_send(Boundary at) { return at >= Boundary::inject && at <= Boundary::send_long; }

// Of one interval. The second part counts for the bytes of the message at one of its two boundaries.
struct SoftwareCost {
  std::uint32_t ps;  // the highest bit: assumed, for this kind of interval was not measured
  std::uint32_t ps_per_kib;
};
inline constexpr std::uint32_t cost_is_assumed = std::uint32_t{1} << 31;

// Of putting a message together from blocks of memory, or of taking it apart: once, for each block, and for its bytes.
struct PackingCost {
  std::uint32_t ps;
  std::uint32_t ps_per_block;
  std::uint32_t ps_per_kib;
  // `block`: the mean length of one.
  std::uint64_t of(std::uint64_t bytes, std::uint32_t block) const {
    return ps + (bytes + block - 1) / block * ps_per_block + bytes * ps_per_kib / 1024;
  }
};

// Of an MPI operation on elements of an MPI type, by their names: what it takes for the same bytes as a sum of doubles,
// of which the table was counted, in units of reduction_unit.
struct ReductionCost {
  char type[32];
  char operation[16];
  std::uint32_t scale;
};
inline constexpr std::uint32_t reduction_unit = 1024;
// In the place of a scale: a function of the program does it.
inline constexpr std::uint32_t programs_reduction = UINT32_MAX;

struct SoftwareRow {
  char call[48];                                       // "MPI_Send"; of the first row empty: for calls without a row
  SoftwareCost costs[boundary_count][boundary_count];  // [from][to]
};

// The file that DRYFLY_SOFTWARE names, in the byte order of the machine; python/dryfly/mpi/software.py writes it.
struct SoftwareTable {
  char format[8];
  std::uint64_t row_count;
  std::uint64_t reduction_count;  // behind the rows
  PackingCost pack;
  PackingCost unpack;
  SoftwareRow rows[1];
};
inline constexpr char software_table_format[8] = {'d', 'f', 's', 'o', 'f', 't', '0', '2'};

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
  PackingCost pack;
  PackingCost unpack;
  std::atomic<std::uint32_t> block;            // mean bytes of a block of the call's buffer; 0: that is contiguous
  std::atomic<std::uint32_t> found_block;      // the same of the message that a poll has found
  std::atomic<std::uint32_t> reduction_scale;  // ReductionCost::scale, of what the call waits for too; 0: as counted
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
    std::uint64_t ps = cost.ps & ~cost_is_assumed;
    if (cost.ps_per_kib != 0) ps += scaled(most * cost.ps_per_kib / 1024);
    raise(charged_ps, ps);
    if ((cost.ps & cost_is_assumed) != 0) raise(assumed_ps, ps);
    if (SoftwareAccount* of = account.load(std::memory_order_relaxed); of != nullptr) {
      of->add(static_cast<std::uint8_t>(last), static_cast<std::uint8_t>(to), most, ps);
    }
    return is_in_blocks() ? ps + charge_packing(to, bytes, last_bytes) : ps;
  }

  bool is_in_blocks() const {
    return (block.load(std::memory_order_relaxed) | found_block.load(std::memory_order_relaxed)) != 0;
  }

  // Beside the interval that is under way: the library has asked a GPU's runtime whose memory so many bytes are.
  std::uint64_t look(std::uint64_t bytes, std::uint64_t ps) {
    raise(charged_ps, ps);
    if (SoftwareAccount* of = account.load(std::memory_order_relaxed); of != nullptr)
      of->add(copied, looked, bytes, ps);
    return ps;
  }

  // It goes on from here.
  void leave(Boundary at, std::uint64_t bytes) {
    from.store(static_cast<std::uint32_t>(at), std::memory_order_relaxed);
    from_bytes.store(bytes, std::memory_order_relaxed);
    found_block.store(0, std::memory_order_relaxed);
  }

 private:
  std::uint64_t scaled(std::uint64_t data_ps) const {
    const std::uint32_t scale = reduction_scale.load(std::memory_order_relaxed);
    if (scale == 0) return data_ps;
    return scale == programs_reduction ? 0 : data_ps * scale / reduction_unit;
  }

  // What is sent is packed before, and what has been found is unpacked after it.
  std::uint64_t charge_packing(Boundary to, std::uint64_t bytes, std::uint64_t found_bytes) {
    const std::uint32_t sends = is_send(to) ? block.load(std::memory_order_relaxed) : 0;
    const std::uint32_t found = found_block.load(std::memory_order_relaxed);
    std::uint64_t ps = 0;
    if (sends != 0) ps += pack.of(bytes, sends);
    if (found != 0) ps += unpack.of(found_bytes, found);
    if (ps == 0) return 0;
    raise(charged_ps, ps);
    if (SoftwareAccount* of = account.load(std::memory_order_relaxed); of != nullptr) {
      of->add(copied, packed, (sends != 0 ? bytes : 0) + (found != 0 ? found_bytes : 0), ps);
    }
    return ps;
  }
};

}  // namespace dryfly::rank
