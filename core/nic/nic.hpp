// The NIC as its host sees it: commands in, completions out. Chooses the protocol of each message (inline, eager,
// rendezvous with a Get issued by the target), keeps the lists of posted receives and of unexpected messages,
// matches, and executes RMA and atomics at their instant. It moves no bytes: payloads are tokens, and the Host (the
// conductor, or a skeleton) knows what they stand for. Below it stands a Network; messages between two end-points of
// one node take the node's local link instead. Models docs/model/nic-protocols.md#message-protocols; the numbers are
// in data/hardware and data/machines.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/nic/counters.hpp"
#include "core/nic/portal.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

// The caller's 64-bit name of an operation; comes back unchanged.
using Token = std::uint64_t;

enum class Protocol : std::uint8_t { inlined, eager, rendezvous, put, get, atomic, count };

struct NicSpec {
  Bytes inline_max;                     // largest payload inside the command
  Bytes pushed_max;                     // of these, the largest whose command the CPU writes to the NIC in one go
  Bytes eager_max;                      // largest eager message; longer ones use rendezvous
  Bytes rendezvous_head;                // bytes that travel with the rendezvous request
  Duration egress_latency;              // command at the NIC until its first packet is ready
  Duration dma_read_latency;            // added once where payload or command has to be fetched from host memory
  Duration ingress_latency;             // last byte at the NIC until matched and placed
  Duration command_interval;            // shortest time between two commands of one NIC (its message rate)
  Duration local_latency;               // on-node link: start to first byte
  Rate local_rate;                      // on-node link: one direction of one source end-point
  Framing framing{};                    // for the counters only
  std::uint32_t list_entries = 16'384;  // of each matching engine, what this job may use
  Duration socket_latency{};            // to a NIC or memory on another socket, each time
  Rate pcie_rate{};                     // that the NICs of a socket share, each way; 0: as much as their links
  Rate link_rate{};                     // of a NIC; used with pcie_rate
  Duration reduction_latency{};         // of a reduction engine, for each packet
  bool gets_by_nic = true;              // else software issues the Get of every rendezvous (driver: rdzv_get_en)
};

struct Envelope {
  bool tagged = false;
  bool has_data = false;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;  // remote CQ data
};

// When a send is complete at its source: the target's NIC has it; it is in the target's memory; a receive has it.
// A rendezvous is all three at once.
enum class Completeness : std::uint8_t { transmitted, delivered, matched };

struct SendCommand {
  EndpointId source;
  EndpointId target;
  Envelope envelope;
  Bytes size;
  Token token = 0;
  TrafficClass traffic_class = TrafficClass::best_effort;
  bool by_dma = false;  // the payload is not in the command, however short it is
  Completeness complete_when = Completeness::transmitted;
};

struct ReceiveCommand {
  EndpointId at;
  bool tagged = false;
  bool any_source = true;
  EndpointId source;  // meaningful unless any_source
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;  // bits of the tag that need not match
  Bytes capacity;
  Token token = 0;
  // Multi-receive: the buffer takes messages one behind the other until less than `min_free` is left.
  bool multi_receive = false;
  Bytes min_free;
};

// A look at the unexpected messages: nothing is posted. `claim` reserves the message found for the next
// receive_claimed() with the same token; `discard` drops it (also one that was claimed before). One that `waits` is
// answered when there is a message, and never with "none": software that matches for itself hears of arrivals by it.
struct PeekCommand {
  EndpointId at;
  bool tagged = false;
  bool any_source = true;
  EndpointId source;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  Token token = 0;
  bool claim = false;
  bool discard = false;
  bool waits = false;
};

enum class RmaKind : std::uint8_t { write, read, atomic, fetching_atomic };

struct RmaCommand {
  RmaKind kind = RmaKind::write;
  EndpointId source;  // who asks
  EndpointId target;  // whose memory it is
  Bytes size;         // bytes written, read, or of atomic operands
  Token token = 0;
  bool ordered = true;
  TrafficClass traffic_class = TrafficClass::best_effort;
  bool by_dma = false;  // the operands are not in the command, however short they are
  bool flush = false;   // a write or plain atomic is complete when a read of the target's NIC has pushed it to memory
};

// Who takes part in reductions, and who sends to whom: each place to its parent, the root, which is its own, to nobody.
struct GroupTree {
  std::vector<EndpointId> members;
  std::vector<std::uint32_t> parents;
  std::uint32_t root = 0;
  Duration arming{};  // how long one lasts
};

// The CPUs of these form a group: all of them have begun. The caller knows it by `token`.
struct JoinCommand {
  std::vector<EndpointId> members;
  std::uint32_t radix = 2;
  Duration step{};  // what software takes for one step of a pass
  Token token = 0;
};

struct ContributeCommand {
  std::uint32_t group = 0;
  std::uint32_t member = 0;    // its place in the tree
  std::uint64_t sequence = 0;  // of the group's reductions, from 0; all members give theirs in this order
  Token token = 0;
  bool by_dma = false;
};

struct CollectiveTotals {
  std::uint64_t groups = 0;      // formed
  std::uint64_t reductions = 0;  // completed, barriers included
  std::uint64_t packets = 0;     // up and down their trees
  std::uint64_t armings = 0;     // reductions that had to wait for an arming packet
};

struct Received {
  EndpointId at;
  EndpointId source;
  Token receive = 0;
  Token send = 0;
  Envelope envelope;
  Bytes size;                    // of the message, also when it is longer than the buffer
  Bytes offset;                  // into a multi-receive buffer
  bool buffer_released = false;  // multi-receive: this was the buffer's last message
  Protocol protocol = Protocol::eager;
  bool on_node = false;
  std::uint32_t switch_hops = 0;
  bool matched_in_software = false;  // the CPU that takes the completion has the matching still to do
};

struct Peeked {
  EndpointId at;
  Token peek = 0;
  bool found = false;
  EndpointId source;
  Envelope envelope;
  Bytes size;
  Token send = 0;
};

// What an operation ends with whose other side cannot be reached: libfabric's FI_EHOSTUNREACH, as the real provider
// reports C_RC_UNDELIVERABLE of the retry handler. The number is part of libfabric's ABI.
inline constexpr int error_unreachable = 113;
// FI_ENOTCONN, for C_RC_VNI_NOT_FOUND: the target is on another virtual network.
inline constexpr int error_other_network = 107;

// What the NIC tells its host, always at engine.now(), the instant at the NIC; the host adds what it takes until
// a CPU can see it.
class Host {
 public:
  virtual ~Host() = default;
  // The transmit completion: the buffer may be used again (acknowledged by the target NIC, or, for rendezvous, the
  // done message is back).
  virtual void sent(EndpointId source, Token send) = 0;
  virtual void received(const Received& received) = 0;
  // Instead of these two: the network has given up.
  virtual void send_failed(EndpointId source, Token send, int error) = 0;
  virtual void receive_failed(const Received& received, int error) = 0;
  virtual void peeked(const Peeked& peeked) = 0;
  virtual void cancelled(EndpointId at, Token receive) = 0;
  // A message that no receive will ever take is gone (discarded by a peek, or its target end-point has closed): its
  // payload can be freed.
  virtual void dropped(Token send) = 0;
  // The operation's effect on the target's memory happens now. The answer is 0 or a positive libfabric error number
  // (say FI_EKEYREJECTED), which then comes back in rma_done.
  virtual int apply(Token rma) = 0;
  // The operation is complete at its source: acknowledged, or the data is there.
  virtual void rma_done(EndpointId source, Token rma, int error) = 0;
  // The end-point's provider has work to do; when its CPU has done it, Nics::worked() is told.
  virtual void needs_processor(EndpointId at, const Work& work) = 0;
  // A member, by its place, has done its part in forming a group; the member has the result of the reduction that it
  // gave `part` to. With an error neither comes about. Whoever forms no groups hears neither.
  virtual void joined(Token /*join*/, std::uint32_t /*member*/, int /*error*/) { DRYFLY_CHECK(!"no groups"); }
  virtual void reduced(Token /*part*/, int /*error*/) { DRYFLY_CHECK(!"no groups"); }
  // Information for records: an RMA operation reached its target (a message does so with received()).
  virtual void rma_delivered(const RmaCommand& command, bool on_node, std::uint32_t switch_hops) = 0;
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

// Where in its node an end-point's process runs, and where its NIC is.
struct HostPlace {
  std::uint32_t socket = 0;
  std::uint32_t nic_socket = 0;
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
                     const HostPlace& place = {});
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
