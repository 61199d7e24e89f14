// What the preload (clock and MPI interposer) and the provider share inside one MPI process. The preload defines
// `dryfly_self`; the provider finds it with dlsym and uses a copy of its own when the preload is absent. The
// virtual clock of the rank lives here, so that reading it costs a load.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/noise/noise.hpp"
#include "rank/common_pages.hpp"
#include "rank/software.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

// How the MPI call that the rank is in treats time. Set by the interposer on entry, restored on exit.
enum class CallMode : std::uint32_t {
  unmarked = 0,  // no interposer, or outside MPI: as blocking
  blocking,      // Wait, Recv, collectives: a poll that finds nothing may jump to the next event
  testing,       // Test, Iprobe: must come back with "nothing" at its own instant
  outside,       // Init, Finalize: the rank does not hold virtual time
};

// Streams of a process's GPUs (gpu/), as far as they concern the network: they write to counters of NICs and wait for
// memory that NICs write. Filled in by the GPU's runtime.
struct DeviceStreams {
  // When they do something next; wire::far_future: nothing.
  std::uint64_t (*next_ps)();
  // One waits for memory.
  bool (*wait)();
  // Does what is due.
  void (*act)(std::uint64_t at_ps);
  // What is at the address since that instant.
  void (*written)(std::uint64_t address, std::uint64_t value, std::uint32_t bytes, std::uint64_t at_ps);
};

// What the provider does for them.
struct StreamServing {
  // Has the streams do all that they do up to that instant, to which the clock then goes; in a call of the provider
  // (`within`), and elsewhere.
  void (*within)(std::uint64_t until_ps);
  void (*outside)(std::uint64_t until_ps);
  // Moves the clock to where the streams do something next; false: never.
  bool (*next)();
  // A stream has written there, or a kernel anywhere (0): to a counter's doorbell, perhaps.
  void (*wrote)(std::uint64_t address, std::uint64_t at_ps);
  // A stream waits for that memory from now on. True: what a NIC writes there is in memory at its instant only, so it
  // is to be read there; else DeviceStreams::written says what is there.
  bool (*watch)(std::uint64_t address, std::uint32_t bytes);
};

// What is said of how far the main thread has computed (preload/clock/herald.hpp).
struct Telling {
  std::atomic<std::uint64_t> bits;  // 0: nothing may be said now
  // Ends it, which whoever acts has to do before. Returns the instant to which the clock is bound by what was said.
  std::uint64_t (*hush)();
};

// Of a rank of which several threads call MPI. The functions are filled in by the preload.
struct Threads {
  // How far a thread that waits may move the clock for now (preload/clock/compute.hpp).
  std::uint64_t (*reach)();
  // The calling thread has taken what completes an operation (preload/clock/progress_rest.hpp).
  void (*took)();
  // 1 while one waits for an event.
  std::atomic<std::uint32_t> one_waits;
  // Calls of MPI, of tests in a row by one thread only the first.
  std::atomic<std::uint32_t> turns;
  // 1: one that waits for an event however late is to look again how it is to wait (preload/clock/ledger.hpp).
  std::atomic<std::uint32_t> recall;
};

struct Self {
  std::uint32_t version;                 // wire::version
  std::atomic<std::uint32_t> attached;   // 1 once the provider has joined the run
  std::atomic<std::uint64_t> now_ps;     // the rank's virtual clock
  std::atomic<std::uint32_t> call_mode;  // CallMode
  std::atomic<std::uint32_t> thread_multiple;
  std::atomic<std::uint64_t> waited_ps;  // total by which waiting has moved the clock, for the interposer's split
  std::atomic<std::uint32_t> has_acted;  // since the last wait: sent, or copied to or from memory that the node shares
  std::atomic<std::uint32_t> copies;     // that the MPI library has made, as far as the preload sees them
  // Filled in by the provider on attach; null before.
  wire::RankPage* page;
  wire::SegmentHeader* header;
  // Publishes now_ps to the conductor; cheap. To be called after moving the clock forward.
  void (*publish)();
  // Passes a gate: `start`, `end`, `outside`, `inside`. Returns 1 when every rank has ended, else 0.
  int (*gate)(wire::GateKind kind);
  // Filled in by the preload: this process has joined a served fabric, its clock is virtual from now on.
  void (*joined)();
  // 1: as RankPage::watches_memory, for the provider.
  std::atomic<std::uint32_t> watches_memory;
  // Filled in by the preload once a communicator has a traffic class of its own (preload/mpi/communicator_class.hpp):
  // the class of a message with this tag, or `usual`.
  std::atomic<std::uint8_t (*)(std::uint64_t tag, std::uint8_t usual)> class_of_tag;
  Threads threads;
  Telling telling;
  // Filled in by the preload once it wants to know what peeks look for.
  std::atomic<void (*)(std::uint64_t tag, std::uint64_t ignore)> peeked;
  // Filled in by the preload: memory of the MPI library that is the same in most ranks
  // (preload/memory/first_requests.hpp).
  CommonPages first_requests;
  Software software;
  Noise noise;
  std::uint64_t others_on_core;  // ranks that are bound to the same core, as of the last gate
  std::uint64_t cpu_ppb;         // as wire::SlowNode has it
  // Filled in by the preload: where the process is bound (preload/node).
  wire::NodePlace place;
  std::uint32_t domain;  // of its first processor, one more than its number; 0: not bound
  // Filled in by the provider: `place` has changed.
  void (*moved)(const Self&);
  // Filled in by the preload, for the GPU's runtime, once its streams wait for memory or write to it.
  std::atomic<const DeviceStreams*> streams;
  // 1: `serving` is to be called. By whoever fills in `streams`, and by the provider once a counter has a doorbell.
  std::atomic<std::uint32_t> serves;
  StreamServing serving;  // filled in by the provider

  std::uint64_t now() const { return now_ps.load(std::memory_order_relaxed); }
  void set_clock(std::uint64_t at_ps) { now_ps.store(at_ps, std::memory_order_relaxed); }
  // How long it takes from now on to do what takes so long on a core in order, without detours, that no other rank
  // uses.
  std::uint64_t duration_ps(std::uint64_t ps) {
    return noise.duration_ps(now(), wire::SlowNode::longer(ps + ps * others_on_core, cpu_ppb));
  }
  CallMode mode() const { return static_cast<CallMode>(call_mode.load(std::memory_order_relaxed)); }
  bool has_threads() const { return thread_multiple.load(std::memory_order_relaxed) != 0; }
  bool watches() const { return watches_memory.load(std::memory_order_relaxed) != 0; }
  // The rank acts, in a call that the preload does not know of.
  void end_telling() {
    if (telling.bits.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    if (const std::uint64_t told_ps = telling.hush(); told_ps > now()) set_clock(told_ps);
  }
  // The clock is about to go there.
  void pass_to(std::uint64_t at_ps) {
    if (serves.load(std::memory_order_relaxed) != 0 && serving.within != nullptr) [[unlikely]]
      serving.within(at_ps);
  }
  void count_waiting(std::uint64_t ps) { waited_ps.fetch_add(ps, std::memory_order_relaxed); }
};

}  // namespace dryfly::rank

extern "C" dryfly::rank::Self dryfly_self __attribute__((weak, visibility("default")));
