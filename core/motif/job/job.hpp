// A job of skeletons: up to a million ranks, each a coroutine, over a carriage. Ranks run when the engine comes to
// them; nothing depends on the order in which they were made, on threads or on addresses.
//
// Models what a rank, its CPU and its NIC add to what a carriage does: the costs of calls and completions
// (docs/model/host-costs.md), the stages of a NIC and the rendezvous with its Get
// (docs/model/nic-protocols.md#message-protocols), and copies through the memory of a node.
//
// Left out, and `dryfly run` has it: list entries and their exhaustion, matching by software, the link between sockets
// and a node's memory as something shared.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/host/cpu_costs.hpp"
#include "core/motif/job/carriage.hpp"
#include "core/motif/job/driver.hpp"
#include "core/motif/job/noises.hpp"
#include "core/motif/job/outlets.hpp"
#include "core/motif/job/peer_links.hpp"
#include "core/motif/job/phases.hpp"
#include "core/motif/job/placement.hpp"
#include "core/motif/job/rank.hpp"
#include "core/motif/job/records.hpp"
#include "core/motif/job/reductions.hpp"
#include "core/motif/job/task.hpp"
#include "core/spec/nearness.hpp"
#include "core/spec/spec.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly::motif {

// What messages cost beside what the carriage takes; from the spec's host.*, nic.* and node.*.
struct JobCosts {
  CpuCosts cpu;
  HostLatencies latencies;
  Bytes pushed_max;    // a longer payload is fetched by the NIC
  Bytes injected_max;  // a send of no more is over at once: libraries call fi_tinject, which has no completion
  Bytes eager_max;
  Bytes rendezvous_head;
  Bytes packet;  // its largest payload
  Duration egress;
  Duration dma_read;
  Duration ingress;
  Duration get;              // a rendezvous is matched until its Get is ready
  Duration reduction;        // an engine takes for a packet
  Duration reduction_frame;  // a link does
  Duration command_interval;
  nic::Answering answering;
  nic::GetQueueSpec get_queues;
  bool gets_by_nic = true;                          // else software asks for the payload of a rendezvous
  Duration local_latency;                           // between cores of a node
  Rate copy_rate;                                   // of one core
  Bytes cached{};                                   // what is not longer never gets as far as the memory
  Nearness near{};                                  // where it is known, in place of these three
  std::map<NodeId, std::uint64_t> slow_memories{};  // as NodeMemorySpec::slow
  bool near_by_memory = true;  // messages between ranks of a node are copied; else they go by their NICs
  GpuCosts gpus{};             // where there are any, those copies go by their links

  static JobCosts read(const Spec& spec);
  bool over_at_once(Bytes size) const { return size <= injected_max; }
  // From a call to the first byte at the link.
  Duration to_link(Bytes size) const {
    return latencies.command + egress + (size > pushed_max ? dma_read : Duration{});
  }
  // How far a rank's clock, and what it sends, is ahead of the engine as a rule: it goes on as soon as it is certain
  // when it will.
  Duration lead() const { return to_link(Bytes{~std::uint64_t{0}}) + ingress + latencies.completion; }
  CorePlace core_of(const Placement& placement, std::uint32_t rank) const {
    return near.of_rank(rank % placement.per_node(), placement.per_node());
  }
  Nearness::Way way(const Placement& placement, std::uint32_t one, std::uint32_t other) const {
    if (!near.is_known()) return {.latency = local_latency, .cached = copy_rate, .memory = copy_rate};
    return near.way(core_of(placement, one), core_of(placement, other));
  }
  // Rather than that a NIC carries it.
  bool copies(const Placement& placement, std::uint32_t source, std::uint32_t target) const {
    return near_by_memory && placement.node_of(source) == placement.node_of(target);
  }
  // Messages that GPUs of a node give each other, without a processor.
  bool are_gpus_own(const Placement& placement, std::uint32_t source, std::uint32_t target) const {
    return gpus.count > 0 && source != any_rank && target != any_rank && copies(placement, source, target);
  }
};

// Of an engine for jobs: what the next events need is fetched while those before them in the slot are handled, so a
// slot should hold many.
inline constexpr unsigned job_slot_width_bits = 15;

struct JobTotals {
  std::uint64_t messages = 0;  // one-sided accesses and packets of reductions included
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;       // of ranks and messages
  std::uint64_t records_max = 0;  // under way at once
  std::uint64_t frame_bytes = 0;  // of all coroutines at once
  std::uint64_t aside = 0;        // loads that were brought on a second core
};

// One that has been sent, as a program names its ends; an access counts as sent by whoever asks for it.
struct SentMessage {
  std::uint32_t source;
  std::uint32_t target;
  Bytes size;
};

// The ranks wait for what nobody will send; what() names one of them and what it waits for.
class Standstill : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Job final : private Handler, private Outlets::Listener, private Reductions::Listener {
 public:
  using Program = std::function<Task(Rank&)>;

  // All of them must outlive the job. With two cores loads may be brought on the second one.
  Job(Engine& engine, const Placement& placement, Carriage& carriage, const JobCosts& costs, const Noises& noises,
      std::uint32_t cores = 1);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Runs the program on all ranks from instant 0 until all have ended; once. Throws Standstill, and what it throws.
  // All messages are added to `sent`, if there is one, in the order in which they were sent.
  void run(const Program& program, std::vector<SentMessage>* sent = nullptr);

  CarriageListener& carriage_listener() { return outlets_.carriage_listener(); }
  const Placement& placement() const { return placement_; }
  const JobCosts& costs() const { return costs_; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(ranks_.size()); }
  const Rank& rank(std::uint32_t id) const { return ranks_[id]; }
  // When the last rank had ended.
  Instant end() const;
  JobTotals totals() const;
  // What a rank's core takes to copy so much for another rank of its node, where it copies at all.
  Duration copy_time(std::uint32_t source, std::uint32_t target, Bytes size) const {
    return copy_time(source, costs_.way(placement_, source, target), size);
  }
  // Of when each rank ended and what has been sent.
  std::uint64_t fingerprint() const;

  Phases& phases() { return phases_; }
  // Another choice of NICs: of its node's, rank l of p ranks of a node takes number l * count / p of the list. Before
  // run().
  Lane lane(const std::vector<std::uint32_t>& nics) { return outlets_.add_lane(placement_, nics); }

 private:
  friend class Driver;
  friend class Rank;
  friend Frames& frames_of(Rank& rank);
  using Kind = Outlets::Listener::Kind;

  void handle(Event event) override;
  void prefetch(Event event, unsigned stage) const override;
  void settled(std::uint32_t message, Instant arrived, Instant answered) override;
  void schedule(Instant at, Kind kind, std::uint32_t index) override;

  Pending send(Rank& rank, std::uint32_t to, std::uint32_t tag, Bytes size, Lane lane);
  Pending receive(Rank& rank, std::uint32_t from, std::uint32_t tag);
  Pending access(Rank& rank, Leg leg, std::uint32_t peer, Bytes size, Told told);
  void want(Rank& rank, Pending pending);
  Instant watch(Rank& rank, Pending pending);
  void tell(Rank& rank, std::uint32_t record, Instant visible);
  void resume(Rank& rank);
  void resume_at(Rank& rank, Instant at);
  void wake_at(Rank& rank, Instant at);
  void wake(Rank& rank);

  Duration copy_time(std::uint32_t source, const Nearness::Way& way, Bytes size) const;
  void copy_on_node(std::uint32_t message, Instant from);
  void arrive(std::uint32_t message);
  void match(std::uint32_t message, std::uint32_t receive, Instant at);
  void finish_receive(std::uint32_t receive, Instant at) override;
  void finish_own(std::uint32_t message, Instant at);
  void finish(Rank& rank, bool by_name, Duration cost);
  void forget(std::uint32_t message);

  Engine& engine_;
  const Placement& placement_;
  const JobCosts costs_;
  const Noises& noises_;
  Frames frames_;
  Records records_;
  Outlets outlets_;
  Reductions reductions_;
  LargeVector<Rank> ranks_;
  std::vector<Task> tasks_;
  PeerLinks peer_links_;
  Phases phases_;
  Driver* driver_ = nullptr;
  std::uint32_t ended_ = 0;
  std::uint32_t gathered_ = 0;
  Instant gathered_until_{};
  JobTotals totals_;
  std::vector<SentMessage>* sent_ = nullptr;
  const Bytes cached_;
};

}  // namespace dryfly::motif
