// The bytes between an MPI process and the simulator: one shared segment, made by the conductor with memfd and
// handed to each rank over a socket. It has no name, so nothing stays behind. Both sides compile this file; the
// version is checked on attach. Everything is fixed-width, offsets are from the start of the segment, and times
// are picoseconds of virtual time.
//
// A rank (MPI process) pushes Commands into its command ring and reads Events from its event ring. When it has
// nothing to do it writes a Gate request and waits until the conductor releases it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/memory/placed.hpp"
#include "core/noise/settings.hpp"

namespace dryfly::wire {

inline constexpr std::uint64_t segment_magic = 0x796c667972643031U;  // "10dryfly"
inline constexpr std::uint32_t version = 24;
inline constexpr std::uint32_t rank_count_max = 16384;
inline constexpr std::uint32_t inline_bytes_max = 192;
inline constexpr std::uint32_t record_granule = 64;
// A ring from which everything has been taken is begun again from its start beyond here: one that never holds much then
// stays in the cache, and most of its pages are never touched.
inline constexpr std::uint32_t ring_rewind_bytes = 8 * 1024;
inline constexpr std::uint32_t endpoint_count_max = 128;  // per rank; as many as a NIC of the machine gives a process
inline constexpr std::uint32_t any_rank = 0xffffffffU;    // Hello: the served fabric gives one
inline constexpr std::uint32_t arena_size_classes = 40;
inline constexpr std::uint32_t arena_granule = 256;  // smallest block of the arena (arena.hpp)
inline constexpr std::uint32_t common_copies = 2;
inline constexpr std::uint64_t far_future = ~std::uint64_t{0};

// What making memory known to the NIC costs the CPU, and letting it go (docs/model/registration.md).
struct RegistrationCosts {
  std::uint64_t map_ps = 0;         // one mapping
  std::uint64_t map_page_ps = 0;    // and each of its pages
  std::uint64_t unmap_ps = 0;       // its end
  std::uint64_t unmap_page_ps = 0;  // and each of its pages
  std::uint64_t watch_ps = 0;       // where the monitor is the kernel's: that it is to watch a range
  std::uint64_t link_ps = 0;        // a list entry for a region, or its end
  std::uint64_t fault_ps = 0;       // on-demand paging: the NIC's first access to a block
  std::uint64_t page_bytes = 0;     // 0: nothing is charged
  std::uint64_t translates = 0;     // 1: processor and NIC have PCIe's address translation services
  std::uint64_t names_pages = 0;    // 1: commands say where their buffers are (BufferPages)
};

// Where a buffer that the NIC moves begins, by a name that is the same in every run (dryfly::DmaPages). As a word of a
// command; 0: it needs no translation.
struct BufferPages {
  std::uint64_t page;  // of the process, by units of 4 KiB
  std::uint8_t shift;
  bool kept;
  bool by_processor;

  static constexpr std::uint32_t page_at = 8;
  static constexpr std::uint64_t shift_mask = 0x3f;
  constexpr std::uint64_t word() const {
    return page << page_at | std::uint64_t{by_processor} << 7 | std::uint64_t{kept} << 6 | (shift & shift_mask);
  }
  static constexpr BufferPages of(std::uint64_t word) {
    return {word >> page_at, static_cast<std::uint8_t>(word & shift_mask), (word >> 6 & 1) != 0, (word >> 7 & 1) != 0};
  }
};

// What the MPI library's software costs on the machine's CPU; all from the machine file (host.*).
struct HostCosts {
  std::uint64_t send_ps = 0;          // one send call, of a payload inside its command
  std::uint64_t send_fetched_ps = 0;  // of one that the NIC fetches
  std::uint64_t receive_ps = 0;       // one receive posted
  std::uint64_t rma_ps = 0;           // one write or atomic, of a payload inside its command
  std::uint64_t rma_fetched_ps = 0;   // one whose payload the NIC fetches, or which brings something back
  std::uint64_t completion_ps = 0;    // one completion read, but of these two
  std::uint64_t sent_ps = 0;          // that of a send
  std::uint64_t received_ps = 0;      // that of a message received
  std::uint64_t poll_ps = 0;          // one poll that finds nothing
  std::uint64_t clock_read_ps = 0;    // one reading of a clock by the program
  std::uint64_t match_ps = 0;         // one message matched, or one header taken over, by software
  std::uint64_t wake_ps = 0;          // more for what the rank has waited for
  std::uint64_t buffer_ps = 0;        // more for a send or a receive of the host's memory
  std::uint64_t gpu_buffer_ps = 0;    // and of a GPU's
  RegistrationCosts registration;
};

// What a rank has registered, in timed calls.
struct RegistrationCounts {
  std::uint64_t hits;  // of the cache
  std::uint64_t misses;
  std::uint64_t uncached;     // registered without a cache
  std::uint64_t evicted;      // for lack of room
  std::uint64_t invalidated;  // the monitor saw the memory go, or a larger range took the place
  std::uint64_t mapped;
  std::uint64_t mapped_pages;
  std::uint64_t mapped_bytes;  // of whole pages
  std::uint64_t unmapped;
  std::uint64_t regions;  // of the program: fi_mr_reg
  std::uint64_t faults;
  std::uint64_t ps;
};

enum class ComputeMode : std::uint32_t { none = 0, measured = 1, replay = 2, model = 3 };

// What a node computes with, for ComputeMode::model: its processors, or its GPUs; all zero if it has none.
inline constexpr std::uint32_t precision_count = 3;  // FP64, FP32, and the two of 16 bits
struct ComputePlace {
  std::uint64_t latency_ps;
  std::uint64_t memory_bytes_per_s;
  std::uint64_t operations_per_s[precision_count];
};

// Room for copies of memory that is the same in all ranks (rank/common_pages.hpp).
struct alignas(64) CommonCopies {
  std::atomic<std::uint64_t> pages[common_copies];  // in each; 0 until it is complete
  std::uint64_t offset;
  std::uint64_t bytes;
};

// How measured or announced computing becomes virtual time.
struct ComputeSettings {
  ComputeMode mode;
  std::uint32_t factor_ppm;        // measured CPU time times this, in millionths
  std::uint32_t numerics_skipped;  // 1: programs need not compute what they announce (ComputeMode::model)
  ComputePlace cpu, gpu;           // of a whole node
};

// Where payloads lie between two processes (arena.hpp). What is known of each granule lies apart from it.
struct ArenaLayout {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t ahead_bytes;    // of it, what every rank maps before the start
  std::uint64_t states_offset;  // a byte for each granule
  std::uint64_t links_offset;   // eight for each
};

constexpr std::uint64_t picoseconds_per_kib(std::uint64_t bytes_per_s) {
  constexpr std::uint64_t kib_ps = 1024 * 1'000'000'000'000;
  return kib_ps / bytes_per_s;
}

// Where a rank copies: its core, and the memory that its buffers are in (docs/model/on-node.md#places).
struct CopyPlace {
  std::uint16_t region;  // one more than the number of the core's L3 region; 0: not known, all cores are alike
  std::uint8_t socket;   // of the core
  std::uint8_t memory_socket;
  std::uint32_t domain;  // that the memory is bound to, one more than its number; 0: none
};
inline constexpr std::uint32_t distance_count = 3;  // of Nearness
inline constexpr std::uint32_t domains_max = 64;

// What copying costs a rank.
struct CopyCosts {
  std::uint64_t ps;             // each time, to or from memory that the ranks of a node share
  std::uint64_t ps_per_kib;     // of a core by itself
  std::uint64_t cached;         // bytes: what is not longer than that stays in caches
  std::uint64_t cross_ps;       // a call that copies out of another process's memory
  RegistrationCosts attaching;  // of another process's memory (XPMEM)
  // Of a core, what is in its second-level cache, for bytes that are not more than that; by distance, in caches and out
  // of memory. 0: not known.
  std::uint64_t own_cached;
  std::uint64_t own_ps_per_kib;
  std::uint64_t cached_ps_per_kib[distance_count];
  std::uint64_t copied_ps_per_kib[distance_count];
  // With `nodes_share_memory`: bytes for which there is room in an interval of a MovedMemory, of the memory of a node,
  // of each of its NUMA domains, of the link between two sockets, each way, and of the ways into an L3 region and out
  // of it; 0: it has no rate. And where these lie: rank/node_accounts.hpp.
  std::uint64_t room;
  std::uint64_t domain_room[domains_max];
  std::uint64_t crossing_room;
  std::uint64_t into_region_room;
  std::uint64_t out_of_region_room;
  std::uint64_t nic_ps_per_kib;  // of a payload of a NIC; 0: it takes none of it
  std::uint64_t accounts_offset;
  std::uint64_t accounts_bytes;  // of each node
  std::uint32_t domains;
  std::uint32_t sockets;
  std::uint32_t regions;  // whose ways in and out have a rate
};

// What a CXI service has so many of at each NIC, for all processes that use it there.
enum class Resource : std::uint32_t { portal_entries, transmit_queues, target_queues, event_queues, counters, count };
inline constexpr std::uint32_t resource_count = static_cast<std::uint32_t>(Resource::count);
inline constexpr std::uint32_t nics_per_node_max = 64;
inline constexpr std::uint32_t service_vnis_max = 4;

// The CXI service that the job runs under (docs/model/services.md).
struct ServiceSettings {
  std::uint32_t id;         // 0: none that it would be held to
  std::uint32_t vni_count;  // of the next; 0: a range
  std::uint16_t vnis[service_vnis_max];
  std::uint16_t vni_least;
  std::uint16_t vni_most;
  std::uint32_t classes;               // bit by dryfly::TrafficClass
  std::uint32_t most[resource_count];  // by Resource
  std::uint32_t triggered_operations;
  std::uint64_t use_offset;  // ServiceUse of each node of the job

  bool restricts_range() const { return vni_least > 1 || vni_most < UINT16_MAX; }
};
// Of one node.
struct ServiceUse {
  std::atomic<std::uint32_t> of_nic[nics_per_node_max][resource_count];
};

struct SegmentHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t rank_count;
  std::uint64_t segment_bytes;
  std::uint64_t rank_area_offset;
  std::uint64_t rank_area_stride;  // RankPage, then command ring, then event ring
  ArenaLayout arena;
  std::uint32_t command_ring_bytes;  // powers of two
  std::uint32_t event_ring_bytes;
  HostCosts costs;
  ComputeSettings compute;
  NoiseSettings noise;                 // of the ranks' cores
  std::uint64_t epoch_ps;              // CLOCK_REALTIME of virtual instant 0, since 1970, in microseconds
  std::uint32_t cross_memory_allowed;  // 0: payloads are staged in the arena
  std::uint32_t inline_max;            // payloads up to here travel inside the record (at most 192)
  std::uint32_t eager_max;             // payloads up to here are copied to the arena at the call
  std::uint32_t nodes_share_memory;    // 1: ranks of a node talk through memory, taking turns (baton)
  CopyCosts copies;
  ServiceSettings service;
  std::uint32_t served;                              // not 0: processes join and leave at any time (dryfly serve)
  alignas(64) std::atomic<std::uint64_t> arena_top;  // bump pointer; ranks carve chunks of it
  alignas(64) std::atomic<std::uint32_t> doorbell;   // futex word, counts rings
  std::atomic<std::uint32_t> conductor_asleep;
  std::atomic<std::uint32_t> conductor_processor;  // one more than the number of that on which it spins
  std::atomic<std::uint32_t> gathering_processor;  // the same of that on which ranks sleep now; 0: on any
  alignas(64) std::atomic<std::uint32_t> spinning_ranks;
  std::atomic<std::uint32_t> told;  // a bit for what one rank has said for all (provider/refusal.hpp)
  CommonCopies table;               // the MPI library's table of addresses (rank/common_table.hpp)
  CommonCopies requests;            // its first block of requests (preload/memory/first_requests.hpp)
  alignas(64) std::atomic<std::uint64_t> attention[rank_count_max / 64];  // bit per rank: look at its page
};

enum class GateKind : std::uint32_t {
  none = 0,
  poll,        // release when everything visible at `at_ps` is in the event ring
  wait,        // release when an event is there
  wait_until,  // release at an event or when virtual time has passed deadline_ps
  start,       // MPI_Init is done; release when it is everywhere
  end,         // MPI_Finalize begins; release at an event, or when it has begun everywhere (see all_ended)
  outside,     // from now on this rank does not hold virtual time (Init, Finalize, spawn, connect); never waits
  inside,      // back: release with a clock that is not in anybody's past
  drain,       // release when the command ring is empty
  baton,       // begins an MPI call; release when no rank of the node may come before it (conductor/batons.hpp)
  baton_back,  // has left the call; never waits
  meet,        // release when as many ranks as `meeting_size` are at the same `meeting`, all at one instant
  news,        // release when News are there, or when virtual time has passed deadline_ps, whatever events there are
  fail,        // is about to end the job; release the first rank in virtual time that is, and no other
};

// One entry of the profile of MPI calls. Which call an index stands for is the preload's table, sent on attach.
struct CallProfile {
  std::uint64_t count;
  std::uint64_t bytes;
  std::uint64_t time_ps;
};
inline constexpr std::uint32_t call_profile_count = 512;

// How the rank's main thread has read clocks.
struct ClockReadings {
  std::uint64_t count;
  std::uint64_t passed_ps[64];  // from one reading to the next: the sum of those of [2^i, 2^(i+1)) picoseconds
};

// Where the rank's virtual time went; waiting + communicating + computing = now since the start.
struct RankTimes {
  std::uint64_t computing_ps;
  std::uint64_t waiting_ps;           // inside MPI, clock moved forward by waiting
  std::uint64_t communicating_ps;     // inside MPI, the rest
  std::uint64_t gpu_ps;               // of computing: in calls of a simulated GPU's runtime
  std::uint64_t gpu_calls;            // those outside of MPI
  std::uint64_t measured_ns;          // measured CPU time, without the next
  std::uint64_t looked_ns;            // what looking at the CPU clock has taken, not counted
  std::uint64_t looked_unsure_ns;     // by which that may be too much or too little
  std::uint64_t replay_mismatches;    // replay: points at which the recording did not fit the program
  std::uint64_t announced_work;       // calls of dryfly_work that took time
  std::uint64_t software_ps;          // of communicating: charged for the MPI library's own code (rank/software.hpp)
  std::uint64_t software_assumed_ps;  // of that: for kinds of intervals that were not counted
  NoiseTaken noise;                   // by detours of the rank's core
  std::uint64_t classes_refused;      // by the service, as bits: what was to travel in them travels as best effort
  RegistrationCounts registered;      // of communicating
  std::uint64_t several_threads;      // 1: MPI was called while there were several threads; nothing repeats exactly
  std::uint64_t forks;                // by which the process was copied while virtual time ran
  ClockReadings clock_readings;
};

// What the rank was charged for one kind of interval of the MPI library's own code (rank/software_account.hpp).
struct SoftwareSpent {
  std::uint16_t call;  // as in the profile
  std::uint8_t from;   // rank::Boundary
  std::uint8_t to;
  std::uint32_t unused;
  std::uint64_t count;
  std::uint64_t bytes;  // of the messages at their ends, or what was copied
  std::uint64_t ps;
};
// What an MPI call waits for: a nonblocking collective, whose schedule is charged apart, and apart again where it adds
// up. In SoftwareSpent::call above the call's number.
enum class Schedule : std::uint8_t { none, collective, reduction };
inline constexpr const char* schedule_suffixes[] = {"", " (collective)", " (reduction)"};
inline constexpr unsigned schedule_shift = 14;
inline constexpr std::uint32_t schedule_call_mask = (1U << schedule_shift) - 1;
// Of a rank. The first is for kinds that come when the others are taken.
inline constexpr std::uint32_t software_spent_count = 1024;
struct SoftwareSpending {
  std::uint32_t kinds;  // of `spent` taken, behind the first one
  SoftwareSpent spent[software_spent_count];
};

inline constexpr std::uint32_t nudge_bits = 8;
inline constexpr std::uint32_t ticket_mask = (1U << (32 - nudge_bits)) - 1;

// What a rank that stops asks the conductor for.
struct GateRequest {
  std::atomic<std::uint32_t> count;  // of requests, ever
  GateKind kind;
  std::uint64_t at_ps;
  std::uint64_t deadline_ps;
  std::uint64_t meeting;       // what it meets the others for: equal for all of them, and nobody else
  std::uint32_t meeting_size;  // how many they are
  std::uint32_t has_acted;     // since it got the baton: may have written to memory that the node shares
  std::uint32_t heeds_news;    // where an event ends the wait, News do, too
};

// The conductor asks the rank to touch its own memory, where cross-memory attach is forbidden.
struct Service {
  std::atomic<std::uint32_t> request;  // counts requests; futex word
  std::atomic<std::uint32_t> done;
  std::uint32_t is_write;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t arena_offset;
};

// Where a rank's process is bound in its node, as its launcher or the process itself has it (preload/node): a bit for
// each hardware thread and NUMA domain.
inline constexpr std::uint32_t processors_max = 1024;
struct NodePlace {
  std::uint64_t processors[processors_max / 64];  // none: not bound
  std::uint64_t memories;                         // none: where it runs
};
static_assert(sizeof(NodePlace) <= inline_bytes_max);

// What is left of the speed of a rank's cores and of its node's memory, in billionths (core/spec/slow_parts.hpp); 0:
// all.
struct SlowNode {
  std::uint64_t cpu_ppb;
  std::uint64_t memory_ppb;

  static std::uint64_t longer(std::uint64_t ps, std::uint64_t ppb) {
    return ppb == 0 ? ps : product_over(ps, 1'000'000'000, ppb);
  }
  static std::uint64_t less(std::uint64_t rate, std::uint64_t ppb) {
    return ppb == 0 ? rate : product_over(rate, ppb, 1'000'000'000);
  }

 private:
  // Apart, for a division of 128 bits is a call, around which every caller of the above would have to save registers.
  __attribute__((noinline, cold)) static std::uint64_t product_over(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{a} * b / c);
  }
};

// What the rank has of its node, by where it and the others are bound.
struct NodeShare {
  std::uint32_t counts;          // 0: nobody on the node is bound, and the next three say nothing
  std::uint32_t others_on_core;  // ranks with which it shares its core
  std::uint64_t operations_ppb;  // of what the node's processors compute
  std::uint64_t memory_bytes_per_s;
  std::uint32_t ranks_on_node;  // for ComputeMode::model: they share what the node computes with
  // What a core copies by where it is, in caches and out of memory; 0: as CopyCosts has it.
  std::uint64_t cached_ps_per_kib;
  std::uint64_t copied_ps_per_kib;
  std::uint64_t cached;      // the longest copy that stays in caches; 0: as CopyCosts has it
  std::uint64_t across_ppb;  // of the others on its node those on other sockets; 0 where nobody knows
  CopyPlace copies_at;
  std::uint32_t node_of_job;  // which of the job's nodes it is; this and the next never change
  SlowNode slow;
};

// What a NIC has done to memory that streams of the rank's GPUs may wait for: it has written a counter back there, or
// another's RMA has changed it (what arrives for a receive, and what own reads bring, is not told). Apart from events,
// for a stream goes on while its process computes and takes none.
struct News {
  std::uint64_t at_ps = 0;  // visible from this instant on
  std::uint64_t address = 0;
  std::uint64_t value = 0;    // what is there now
  std::uint32_t counter = 0;  // whose value that is, for its process to put there; 0: it is there
  std::uint32_t bytes = 0;    // of the value
};
// A counter as its NIC writes it back: 48 bits of successes, and at the top that it was written.
inline constexpr std::uint64_t written_back(std::uint64_t successes) {
  return (successes & ((std::uint64_t{1} << 48) - 1)) | std::uint64_t{1} << 63;
}
// Further ones wait.
struct NewsRing {
  static constexpr std::uint32_t most = 64;
  std::atomic<std::uint64_t> head;  // put there, ever, each at its number modulo the size; written by the conductor
  std::atomic<std::uint64_t> tail;  // taken, ever
  News news[most];
};

// When a rank gave the baton of its node back last, and how often it has.
struct BatonEnd {
  std::uint64_t at_ps;
  std::atomic<std::uint32_t> count;
};
// By the number of its process, from where a rank copies: of its share, once it has copied; and what has been placed in
// its memory. How many bytes others have copied of what it has written, by their distance, they write themselves, in
// turn.
struct Copier {
  std::uint32_t process;
  CopyPlace at;
  PlacedMemory placed;
  std::uint64_t read_bytes[distance_count];
};

// What a thread of the rank's own says of its computing (preload/clock/herald.hpp). The rank writes it but for `asked`.
struct Progress {
  std::atomic<std::uint64_t> reached_ps;    // nothing that the rank does from now on happens earlier; 0: not said
  std::atomic<std::uint64_t> looks_for_ps;  // it looks by itself until the clock is there; far_future: it sleeps
  std::atomic<std::uint32_t> asked;         // futex word, counts questions
  std::atomic<std::uint32_t> has_herald;    // 1: there is such a thread
};

// Who has written what lies in memory that the ranks of a node share.
struct Writer {
  CopyPlace at;
  std::uint32_t rank;
};

struct alignas(64) RankPage {
  // Written by the rank.
  alignas(64) std::atomic<std::uint64_t> clock_ps;  // nothing that this rank does from now on happens earlier
  Progress progress;
  std::atomic<std::uint64_t> command_head;  // bytes pushed, ever
  std::atomic<std::uint64_t> event_tail;    // bytes consumed, ever
  std::atomic<std::uint64_t> copies_done;   // copy orders executed, ever
  GateRequest gate;
  BatonEnd baton_end;
  std::atomic<std::uint32_t> asleep;      // waits on `released` by futex
  std::atomic<std::uint32_t> call_index;  // the MPI call it is in (profile index + 1), 0: none
  std::atomic<std::uint64_t> call_count;  // MPI calls entered, ever
  std::atomic<std::uint32_t> wants_byte;  // send a byte through the socket when an event is there
  // 1: the library looks at memory that others' NICs change; such changes come at their instants (docs/decision/0006).
  std::atomic<std::uint32_t> watches_memory;
  NodePlace place;
  Copier copier;
  // Written by the conductor.
  // Futex word: the ticket of the gate request released last, above a count of nudges. A nudge wakes a waiting rank
  // without releasing it, to serve the conductor or to copy payloads.
  alignas(64) std::atomic<std::uint32_t> released;
  std::atomic<std::uint32_t> all_ended;         // every rank is in MPI_Finalize: virtual time is over
  std::atomic<std::uint32_t> away;              // served: does not hold virtual time, has to pass `inside` first
  std::atomic<std::uint64_t> horizon_ps;        // every event visible up to here is in the ring
  std::atomic<std::uint64_t> notify_at_ps;      // ring the doorbell when clock_ps reaches this
  std::atomic<std::uint64_t> notify_copies;     // ring the doorbell when copies_done reaches this
  std::atomic<std::uint64_t> release_clock_ps;  // start, inside: the clock to go on with
  std::atomic<std::uint64_t> event_head;
  std::atomic<std::uint64_t> command_tail;
  NewsRing news;
  alignas(64) Service service;
  NodeShare share;  // before it releases the rank
  alignas(64) RankTimes times;
  std::uint64_t arena_hands[arena_size_classes];  // the allocator of whoever is this rank, see arena.hpp
  CallProfile profile[call_profile_count];
  SoftwareSpending software;
};

// Nothing that the rank does from now on happens earlier, as far as it has said.
inline std::uint64_t earliest_ps(const RankPage& page) {
  return std::max(page.clock_ps.load(std::memory_order_seq_cst),
                  page.progress.reached_ps.load(std::memory_order_seq_cst));
}

enum class CommandKind : std::uint32_t {
  open_endpoint = 1,  // inline payload: EndpointSettings
  close_endpoint,
  send,  // untagged; flags
  tagged_send,
  receive,  // posts a buffer; flags: any_source, multi_receive
  tagged_receive,
  peek,  // untagged FI_PEEK; flags: claim, discard, waits
  tagged_peek,
  receive_claimed,
  cancel,  // context of the receive, found by the conductor
  write,
  read,
  atomic,  // no result
  fetch_atomic,
  compare_atomic,
  memory_region,  // registers `length` bytes at `buffer`
  close_memory_region,
  work_done,   // what an event `work` asked for; the same fields
  join_group,  // inline payload: GroupSettings, then addresses, a piece of the list of members
  leave_group,
  contribute,      // to a reduction; inline payload: Contribution
  count,           // adds `data` to `counter`, or with command_flag::sets sets it
  cancel_trigger,  // of the command with this context that waits for its counter
  move,            // the rank is bound elsewhere from now on; inline payload: NodePlace
  write_back,      // of `counter`, as News; with command_flag::sets to `buffer` from now on, 0: to nowhere
  watch,  // News of what others' RMA does to the `length` bytes, 4 or 8, at `buffer` from now on, and of what is there
};

// In front of the addresses of a join_group.
struct GroupSettings {
  std::uint64_t arming_ps;   // how long it lasts
  std::uint32_t radix;       // of the tree in which the group is formed
  std::uint32_t groups_max;  // of the job; 0: no limit
};
inline constexpr std::uint32_t join_piece_max = (inline_bytes_max - sizeof(GroupSettings)) / sizeof(std::uint32_t);

// Behind an open_endpoint: how the provider wants the end-point, from its process's environment.
struct EndpointSettings {
  std::uint32_t match_mode;  // dryfly::MatchMode
  std::uint32_t flags;
  std::uint64_t eager_max;        // far_future: the machine's
  std::uint64_t rendezvous_head;  // far_future: the machine's
  std::uint64_t overflow_buffer;
  std::uint64_t request_buffer;
  std::uint32_t overflow_buffers;
  std::uint32_t request_buffers;
  std::uint32_t event_slots;
  std::uint32_t event_batch;
  std::uint32_t receive_size;
  std::uint32_t software_gets;
  std::uint32_t control_slots;
  std::uint16_t network;        // VNI
  std::uint8_t software_class;  // dryfly::TrafficClass
  std::uint8_t reserved;
};
static_assert(sizeof(EndpointSettings) <= inline_bytes_max);
namespace endpoint_flag {
inline constexpr std::uint32_t preempt_on_pool = 1U << 0;
inline constexpr std::uint32_t preempt_on_posted = 1U << 1;
inline constexpr std::uint32_t preempt_on_unexpected = 1U << 2;
inline constexpr std::uint32_t fences = 1U << 3;  // may use command_flag::fence
inline constexpr std::uint32_t preempt_on_overflow = 1U << 4;
inline constexpr std::uint32_t notifies_done = 1U << 5;
inline constexpr std::uint32_t lossless = 1U << 7;
inline constexpr std::uint32_t in_memory = 1U << 8;         // talks to its like through the memory of its node
inline constexpr std::uint32_t commands_fetched = 1U << 6;  // the CPU writes none to the NIC
}  // namespace endpoint_flag

namespace command_flag {
inline constexpr std::uint32_t wants_completion = 1U << 0;  // an event `sent`/`rma_done` is delivered
inline constexpr std::uint32_t has_data = 1U << 1;          // `data` is remote CQ data
inline constexpr std::uint32_t any_source = 1U << 2;
inline constexpr std::uint32_t multi_receive = 1U << 3;
inline constexpr std::uint32_t claim = 1U << 4;
inline constexpr std::uint32_t discard = 1U << 5;
inline constexpr std::uint32_t unordered = 1U << 6;
inline constexpr std::uint32_t payload_inline = 1U << 7;  // payload follows the record
inline constexpr std::uint32_t payload_arena = 1U << 8;   // payload lies at arena_offset
inline constexpr std::uint32_t payload_memory = 1U << 9;  // payload stays at `buffer` of the sending process
inline constexpr std::uint32_t delivery_complete = 1U << 10;
inline constexpr std::uint32_t match_complete = 1U << 13;
inline constexpr std::uint32_t fence = 1U << 15;      // of an end-point with endpoint_flag::fences
inline constexpr std::uint32_t tells = 1U << 14;      // memory_region: its rank hears of each access (`accessed`)
inline constexpr std::uint32_t waits = 1U << 12;      // peek: answered when there is a message
inline constexpr std::uint32_t sets = 1U << 16;       // count, write_back
inline constexpr std::uint32_t to_device = 1U << 17;  // a receive: the provider brings what lies in its buffers there
inline constexpr std::uint32_t by_dma = 1U << 11;     // the NIC fetches the payload, however short it is
inline constexpr std::uint32_t attaches = 1U << 18;   // a send by memory: its target attaches the buffer (XPMEM)
inline constexpr std::uint32_t kept_in_region = 1U << 19;  // a send by memory: its target's L3 region has it in caches
inline constexpr std::uint32_t kept_in_own = 1U << 20;     // its target's core has
}  // namespace command_flag

// An address of an end-point as it travels in fi_av: rank in the upper, index in the lower bits.
constexpr std::uint32_t make_address(std::uint32_t rank, std::uint32_t endpoint_index) {
  return rank * endpoint_count_max + endpoint_index;
}
constexpr std::uint32_t address_rank(std::uint32_t address) { return address / endpoint_count_max; }
constexpr std::uint32_t address_endpoint(std::uint32_t address) { return address % endpoint_count_max; }

// A word that means something else for each kind has a name for each.
struct Command {
  std::uint32_t record_bytes;  // with inline payload, a multiple of the granule; 0xffffffff: go on at the ring's start
  CommandKind kind;
  std::uint64_t at_ps;
  std::uint32_t endpoint;  // index of the issuing end-point within the rank
  union {
    std::uint32_t peer;  // address of the target, or of the source of a directed receive
    std::uint32_t nic;   // open_endpoint: its number on the node
  };
  std::uint32_t flags;
  std::uint8_t traffic_class;  // dryfly::TrafficClass
  std::uint8_t atomic_op;      // enum fi_op
  std::uint8_t atomic_type;    // enum fi_datatype
  std::uint8_t gpu;            // in whose memory the buffer or region is, counted from 1; 0: the host's, or not said
  std::uint64_t context;       // the provider's name of the operation, comes back in the event
  union {
    std::uint64_t tag;        // tagged_send, tagged_receive, tagged_peek
    std::uint64_t member;     // contribute, leave_group: which of the group
    std::uint64_t work_kind;  // work_done: dryfly::WorkKind
  };
  union {
    std::uint64_t ignore;        // bits of the tag that need not match
    std::uint64_t access_pages;  // BufferPages of an access
  };
  union {
    std::uint64_t data;        // of a send or write with command_flag::has_data
    std::uint64_t access;      // memory_region: what it may be used for, as libfabric says it
    std::uint64_t list_begin;  // join_group: where in the list of members this piece begins
    std::uint64_t sequence;    // contribute: which of the group's reductions
    std::uint64_t work_item;   // work_done
  };
  std::uint64_t buffer;  // address in the issuing process: payload, receive buffer, where a result is wanted
  union {
    std::uint64_t length;      // bytes; for atomics count x size of the type
    std::uint64_t work_count;  // work_done
  };
  std::uint64_t arena_offset;
  union {
    std::uint64_t remote_offset;  // of an access into its memory region
    std::uint64_t pages;          // BufferPages of a send, a receive or a region
  };
  union {
    std::uint64_t key;           // memory_region, close_memory_region, and accesses
    std::uint64_t min_free;      // of a receive with command_flag::multi_receive: less than this is too little
    std::uint64_t member_count;  // join_group: of the whole list
    std::uint64_t group;         // contribute, leave_group: its number
    std::uint64_t attaching_ps;  // of a send with command_flag::attaches: what that takes
  };
  union {
    std::uint64_t claim;            // receive_claimed: context of the peek
    std::uint64_t operand_bytes;    // compare_atomic: behind them is what to compare with
    std::uint64_t result_bytes;     // contribute: as many are wanted
    std::uint64_t work_generation;  // work_done: of the item
  };
  // Counters of the process, which its NIC keeps; 0: none.
  std::uint32_t counter;    // counts the operation when it is complete; memory_region: each access
  std::uint32_t trigger;    // the command waits in the NIC until this one
  std::uint64_t threshold;  // has come to this
};
static_assert(sizeof(Command) == 128 && offsetof(Command, claim) == 104);
inline constexpr std::uint32_t command_bytes = 128;  // the record without inline payload
inline constexpr std::uint32_t wrap_record = 0xffffffffU;

enum class EventKind : std::uint32_t {
  sent = 1,  // send complete
  received,  // a message is there: place its payload, then report it
  peeked,    // flags: found
  cancelled,
  rma_done,         // write, read, atomic complete; a read's or fetch's payload has to be placed
  buffer_released,  // multi-receive buffer is used up (reported with the last message or alone)
  work,             // for the provider
  accessed,         // of a region that asked (command_flag::tells): another rank has read, written or updated it
  written,          // a write with data (command_flag::has_data) is in the region
  memory_changed,   // nothing to report: a NIC has written to memory that a waiting rank may be watching
  joined,           // a group; or not, by the error
  reduced,          // the result of a reduction
  counted,          // a count that had waited for its counter has been carried out
  head_to_copy,     // of a receive with command_flag::to_device: the head of a rendezvous lies in the provider's buffer
};

namespace event_flag {
inline constexpr std::uint32_t has_data = 1U << 1;
inline constexpr std::uint32_t tagged = 1U << 2;
inline constexpr std::uint32_t multi_receive = 1U << 3;  // the receive was a multi-receive
inline constexpr std::uint32_t released = 1U << 4;       // and its buffer is used up
inline constexpr std::uint32_t found = 1U << 5;
inline constexpr std::uint32_t payload_inline = 1U << 7;
inline constexpr std::uint32_t payload_arena = 1U << 8;  // copy from arena_offset, then free it
inline constexpr std::uint32_t payload_memory =
    1U << 9;  // copy from source_buffer of process source_pid, then count it in copies_done
inline constexpr std::uint32_t no_completion = 1U << 10;        // place the payload only
inline constexpr std::uint32_t dropped_free = 1U << 11;         // nothing to report: free arena_offset
inline constexpr std::uint32_t to_copy = 1U << 13;              // received, with to_device: all of it lies there
inline constexpr std::uint32_t matched_in_software = 1U << 12;  // which costs the CPU that takes it match_ps
}  // namespace event_flag

struct Event {
  std::uint32_t record_bytes;
  EventKind kind;
  std::uint64_t at_ps;     // visible to the CPU from this instant on
  std::uint32_t endpoint;  // index within the rank
  std::uint32_t peer;      // address of the other side
  std::uint32_t flags;
  std::int32_t error;     // 0 or a positive libfabric error number
  std::uint64_t context;  // of the operation that this completes
  union {
    std::uint64_t tag;        // received, peeked
    std::uint64_t key;        // accessed, written: of the region
    std::uint64_t member;     // joined: which of the group this end-point is
    std::uint64_t group;      // reduced
    std::uint64_t work_kind;  // work: dryfly::WorkKind
  };
  union {
    std::uint64_t data;       // with event_flag::has_data; written
    std::uint64_t new_group;  // joined: its number
    std::uint64_t status;     // reduced: ReductionStatus
    std::uint64_t work_item;  // work
  };
  union {
    std::uint64_t length;      // of the message or access
    std::uint64_t work_count;  // work
  };
  std::uint64_t place_length;  // bytes to place at buffer
  std::uint64_t buffer;        // where this process wants them (receive buffer plus offset)
  std::uint64_t arena_offset;
  std::uint64_t source_buffer;
  std::uint32_t source_pid;
  std::uint32_t reserved;
  union {
    std::uint64_t offset;           // received: into the receive's buffer; accessed, written: into the region
    std::uint64_t work_generation;  // work: of the item
  };
};
static_assert(sizeof(Event) <= 120 && offsetof(Event, offset) == 104);
inline constexpr std::uint32_t event_bytes = 128;

// Attach: the rank connects to the abstract unix socket named in DRYFLY_CHANNEL (a served fabric: DRYFLY_FABRIC) and
// sends Hello; the conductor answers Welcome with the segment's descriptor as ancillary data. The socket stays open for
// the life of the process: its end tells each side that the other is gone. A byte through it wakes a process that
// sleeps on it in poll() (wants_byte).
struct Hello {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t rank;
  std::uint32_t pid;
  std::uint32_t node;      // with any_rank: where it wants to run
  char libmpi_path[1024];  // as mapped; empty if none
  char libfabric_path[1024];
  char program_path[1024];
};

struct Welcome {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t accepted;  // 0: refused, reason says why
  std::uint64_t segment_bytes;
  std::uint32_t rank;
  std::uint32_t rank_count;
  std::uint32_t node;  // the rank's node
  std::uint32_t nics_per_node;
  std::uint32_t nic_index;  // the NIC of the node that the rank should use first
  std::uint32_t ranks_on_node;
  std::uint32_t rank_on_node;
  char node_name[64];
  char reason[256];
};

}  // namespace dryfly::wire
