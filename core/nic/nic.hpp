// The NIC as its host sees it: commands in, completions out. Chooses the protocol of each message (inline, eager,
// rendezvous with a Get issued by the target), keeps the lists of posted receives and of unexpected messages,
// matches, and executes RMA and atomics at their instant. It moves no bytes: payloads are tokens, and the Host (the
// conductor, or a skeleton) knows what they stand for. Below it stands a Network, which messages within a node use too,
// but for those between end-points that share the node's memory. Models docs/model/nic-protocols.md#message-protocols;
// the numbers are in data/hardware and data/machines.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/contract/host.hpp"
#include "core/contract/memory.hpp"
#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/nic/answering.hpp"
#include "core/nic/counters.hpp"
#include "core/nic/get_queues.hpp"
#include "core/nic/gpu_copies.hpp"
#include "core/nic/portal.hpp"
#include "core/nic/translations.hpp"
#include "core/spec/nearness.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

// What end-points that share the memory of a node have of it (docs/model/on-node.md#memory-of-a-node).
struct NodeMemorySpec {
  Bytes segment_max{4096};      // what is longer is not copied into a segment, but read from the source's own memory
  Duration copy{};              // of each copy, beside its bytes
  Rate copy_rate{};             // of one core
  Bytes cached{};               // what is not longer never gets as far as the memory
  Rate rate{};                  // that all cores of a node share, read and written; 0: as much as they ask for
  Duration cross_copy{};        // a call of the kernel, for each copy of what is longer than the segment takes
  std::vector<Rate> domains{};  // the same of each NUMA domain, for those who are bound to one
  Rate link_rate{};             // of a NIC, at which its payloads come to memory and go; 0: they take none of it
  Rate socket_rate{};           // that copies between two sockets share, each way; 0: as much as they ask for
  Nearness near{};              // where it is known, a core copies what it says, and not copy_rate
  std::map<NodeId, std::uint64_t> slow{};  // of nodes whose memory is slower: the share that is left, in billionths
  GpuCopies gpus{};                        // what copies from and to GPUs take
};

struct NicSpec {
  Bytes inline_max;                     // largest payload inside the command
  Bytes pushed_max;                     // of these, the largest whose command the CPU writes to the NIC in one go
  Bytes eager_max;                      // largest eager message; longer ones use rendezvous
  Bytes rendezvous_head;                // bytes that travel with the rendezvous request
  Duration egress_latency;              // command at the NIC until its first packet is ready
  Duration dma_read_latency;            // added once where payload or command has to be fetched from host memory
  Duration ingress_latency;             // last byte at the NIC until matched and placed
  Duration command_interval;            // shortest time between two commands of one NIC (its message rate)
  NodeMemorySpec memory{};              // of a node, for end-points that share it
  Framing framing{};                    // for the counters only
  std::uint32_t list_entries = 16'384;  // of each matching engine, what this job may use
  Duration socket_latency{};            // to a NIC or memory on another socket, each time
  Rate socket_rate{};                   // of the link between two sockets, each way; 0: as much as is asked for
  Rate pcie_rate{};                     // that the NICs of a socket share, each way; 0: as much as their links
  Rate gpu_link{};                      // between a GPU and the processor, each way; 0: as much as is asked for
  std::map<std::uint32_t, std::uint64_t> slow_gpus{};  // SlowParts::gpus
  std::uint32_t gpus = 0;                              // of a node, tiles counted
  std::uint32_t gpu_tiles = 1;                         // of a GPU, devices of their own
  Rate link_rate{};                   // of a NIC; used with the three rates above, slow_nics and translation
  std::map<NicId, Rate> slow_nics{};  // that have less than their link's rate from and to memory, each way
  Duration reduction_latency{};       // of a reduction engine, for each packet
  TranslationSpec translation{};
  bool gets_by_nic = true;        // else software issues the Get of every rendezvous (driver: rdzv_get_en)
  Duration rendezvous_latency{};  // a rendezvous is matched until the NIC's Get of it is ready
  nic::Answering answering{};
  nic::GetQueueSpec get_queues{};
};

struct CollectiveTotals {
  std::uint64_t groups = 0;      // formed
  std::uint64_t reductions = 0;  // completed, barriers included
  std::uint64_t packets = 0;     // up and down their trees
  std::uint64_t armings = 0;     // reductions that had to wait for an arming packet
};

// Counts of messages and bytes by protocol; `[protocol][hops]` with on-node messages in the last column.
struct NicTotals {
  static constexpr std::uint32_t hop_columns = 8;  // 0..6 switch-to-switch links; the last is on-node
  static constexpr std::uint32_t on_node_column = hop_columns - 1;
  std::array<std::array<std::uint64_t, hop_columns>, static_cast<std::size_t>(Protocol::count)> messages{};
  std::array<std::array<std::uint64_t, hop_columns>, static_cast<std::size_t>(Protocol::count)> bytes{};
  std::uint64_t unexpected_messages = 0;
  std::uint64_t list_entries_max = 0;  // most list entries in use on one end-point
  MatchingTotals matching;
};

// All NICs of a run.
class Nics final {
 public:
  Nics(Engine& engine, Carrier& network, Host& host, const NicSpec& spec);
  ~Nics();
  Nics(const Nics&) = delete;
  Nics& operator=(const Nics&) = delete;

  // End-point ids are chosen by the caller, dense from 0.
  void open_endpoint(EndpointId endpoint, NicId nic, NodeId node, const EndpointSettings& settings = {},
                     const MemoryPlace& place = {});
  // The process behind it is bound elsewhere from now on.
  void move_endpoint(EndpointId endpoint, const MemoryPlace& place);
  // What payloads get of the links between the sockets of a node from now on, each way.
  void limit_crossing(NodeId node, Rate rate);
  // Posted receives vanish without a word; messages that arrive from now on are acknowledged and dropped.
  void close_endpoint(EndpointId endpoint);

  // A command arrives at the NIC at engine.now().
  void send(const SendCommand& command);
  void receive(const ReceiveCommand& command);
  void peek(const PeekCommand& command);
  // Posts a buffer for the message that the peek with token `claim` reserved; delivered with command.token.
  void receive_claimed(const ReceiveCommand& command, Token claim);
  // Takes back a posted receive that nothing has matched; otherwise does nothing.
  void cancel(EndpointId at, Token receive);
  void rma(const RmaCommand& command);
  // The CPU has done what needs_processor() asked for, and its commands are at the NIC now.
  void worked(EndpointId at, const Work& work);

  // Groups for reductions (reductions.hpp): the tree of one, which can be used from then on, and the time it takes to
  // form it.
  std::uint32_t open_group(const GroupTree& tree);
  void close_group(std::uint32_t group);
  void join(const JoinCommand& command);
  void contribute(const ContributeCommand& command);
  CollectiveTotals collective_totals() const;
  NicId nic_of(EndpointId endpoint) const;
  const NicSpec& spec() const;

  // At rest: totals begin at zero, and what follows does not depend on what has been, but for posted receives.
  void restart();
  NicTotals totals() const;
  // Of every NIC that has had an end-point, in the order of their ids.
  std::vector<NicCounters> counters() const;
  // Engine events of the NICs that there have been, and those that are still to come.
  std::uint64_t events_scheduled() const;
  std::uint64_t events_pending() const;
  // Nothing in progress: no send unmatched, none unacknowledged (posted receives do not count).
  bool at_rest() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace dryfly
