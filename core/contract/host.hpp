// The contract between NICs and their host: whoever gives them commands, the conductor for real processes or a motif
// without any. Commands go in at the instant at which they reach the NIC; what the NIC has to say comes back at the
// instant at which the NIC knows it. The time between a CPU and its NIC is the host's (core/host).
//
// Payloads do not travel: a command names what it is about by a token, and only its host knows what that stands for.
// Both end-points of a command are the same host's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/contract/memory.hpp"
#include "core/contract/network.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

// The caller's 64-bit name of an operation; comes back unchanged.
using Token = std::uint64_t;

enum class Protocol : std::uint8_t { inlined, eager, rendezvous, put, get, atomic, count };

enum class MatchMode : std::uint8_t { hardware, software, hybrid };

// What the provider asks for when it opens an end-point: libfabric's FI_CXI_* settings of its process.
struct EndpointSettings {
  MatchMode match_mode = MatchMode::hardware;
  std::uint32_t engine = 0;              // which matching engine of the NIC has the portal
  std::optional<Bytes> eager_max;        // else the machine's
  std::optional<Bytes> rendezvous_head;  // else the machine's
  Bytes overflow_buffer{12 << 20};
  std::uint32_t overflow_buffers = 3;  // kept posted
  Bytes request_buffer{12 << 20};
  std::uint32_t request_buffers = 6;
  std::uint32_t event_slots = 131'072;
  std::uint32_t event_batch = 32;  // how many the CPU acknowledges at a time
  std::uint32_t receive_size = 1024;
  bool preempt_on_pool = false;        // hybrid: to software when half of the engine's entries are in use
  bool preempt_on_posted = false;      // hybrid: when more receives are posted than receive_size
  bool preempt_on_unexpected = false;  // hybrid: when more unexpected messages wait than that
  bool preempt_on_overflow = false;    // hybrid: as on_pool, looked at with every overflow buffer posted
  std::uint16_t network = 0;           // virtual network (VNI): end-points of different ones do not hear each other
  TrafficClass software_class = TrafficClass::best_effort;  // of the Gets and notices that software sends
  std::uint32_t software_gets = 1024;                       // of software that may be under way
  bool notifies_done = false;   // of what it sends by rendezvous: software's Gets are restricted (alt_read)
  bool lossless = false;        // what finds no buffer waits for one, and what is behind it in its class
  bool in_memory = false;       // it and its like on the node write and read the node's memory, and use no NIC
  bool writes_commands = true;  // the CPU writes short commands to the NIC in one go, else the NIC fetches each
  std::uint32_t control_slots = 1U << 20;  // of the event queue for what providers tell each other
};

enum class WorkKind : std::uint8_t {
  onload,        // the portal is disabled or becomes software's: take the unexpected headers
  drain,         // take events from the queue
  replenish,     // post a buffer again
  hold,          // messages were dropped at their target: keep back what follows them, tell the target
  count_drops,   // a source has told how many
  replay,        // the target takes messages again
  software_get,  // a rendezvous request has come: match it and ask for the rest
  fatal_entries,
  fatal_events,
  tell_match,  // a message that was unexpected has its receive: tell its source
  collective,  // the root: all parts are here, complete the reduction; others: the tree is armed, give your part
  tell_done,   // a restricted Get is complete: tell its source
  tell_again,  // the other side had no room for what was told it: wait and repeat it
};

// What the NIC wants of the CPU behind an end-point; comes back unchanged when it is done.
struct Work {
  WorkKind kind = WorkKind::drain;
  std::uint32_t item = 0;   // message, or peer
  std::uint32_t life = 0;   // of that item: it may be another by then
  std::uint32_t count = 0;  // messages or headers that the CPU handles one by one
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

// What a core has of memory that it copies from: nothing, or it is in its region's caches, or in its own.
enum class Kept : std::uint8_t { nowhere, in_region, in_own };

// How a core finds the memory of its source that it copies a message out of: attached, which takes so long, or else the
// kernel copies; and what it has of it from before. It is kept short, for there are as many as messages.
class SourceMemory {
 public:
  constexpr SourceMemory() = default;
  constexpr explicit SourceMemory(Kept kept) : kept_(static_cast<std::uint32_t>(kept) & 3U) {}
  constexpr SourceMemory(Duration attaching, Kept kept)
      : ns_(static_cast<std::uint32_t>(std::min(attaching.ps / 1000, most_ns)) & by_kernel),
        kept_(static_cast<std::uint32_t>(kept) & 3U) {}
  constexpr std::optional<Duration> attaching() const {
    return ns_ == by_kernel ? std::nullopt : std::optional{Duration{std::uint64_t{ns_} * 1000}};
  }
  constexpr Kept kept() const { return static_cast<Kept>(kept_); }

 private:
  static constexpr std::uint32_t by_kernel = (std::uint32_t{1} << 30) - 1;
  static constexpr std::uint64_t most_ns = by_kernel - 1;
  std::uint32_t ns_ : 30 = by_kernel;
  std::uint32_t kept_ : 2 = 0;
};
static_assert(sizeof(SourceMemory) == 4);

struct SendCommand {
  EndpointId source;
  EndpointId target;
  Envelope envelope;
  Bytes size;
  Token token = 0;
  TrafficClass traffic_class = TrafficClass::best_effort;
  bool by_dma = false;   // the payload is not in the command, however short it is
  std::uint8_t gpu = 0;  // of its node, in whose memory the payload is, counted from 1; 0: the host's
  Completeness complete_when = Completeness::transmitted;
  SourceMemory memory{};
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
  std::uint8_t gpu = 0;  // as of a send
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
  bool by_dma = false;   // the operands are not in the command, however short they are
  bool flush = false;    // a write or plain atomic is complete when a read of the target's NIC has pushed it to memory
  std::uint8_t gpu = 0;  // as of a send: of the source's node, in whose memory its own buffer is
  std::uint8_t target_gpu = 0;  // and of the target's, in whose memory the region is
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
  bool lies_in_buffer = false;       // of the provider's, on the host: all of it, and its CPU brings it to its receive
};

// A rendezvous has its receive, and its head lies in a buffer of the provider's as that of Received may.
struct HeadToCopy {
  EndpointId at;
  Token receive = 0;
  Bytes offset;  // into a multi-receive buffer
  Bytes size;
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

// What the NIC tells its host, always at engine.now(), the instant at the NIC; the host adds what it takes until a CPU
// can see it. Each call names an end-point of the host that is told.
//
// A call comes while the NIC is in the middle of something: a host gives no command from within it, but has an event of
// its own for that, be it at the same instant. A send ends for its source with sent() or send_failed(), and its payload
// is wanted no more with received() or dropped(); an RMA operation ends with rma_done(). Sends from one end-point to
// another are matched in the order in which they were given.
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
  virtual void dropped(EndpointId source, Token send) = 0;
  // The operation's effect on the target's memory happens now. The answer is 0 or a positive libfabric error number
  // (say FI_EKEYREJECTED), which then comes back in rma_done.
  virtual int apply(EndpointId source, Token rma) = 0;
  // The operation is complete at its source: acknowledged, or the data is there.
  virtual void rma_done(EndpointId source, Token rma, int error) = 0;
  // The end-point's provider has work to do; when its CPU has done it, Nics::worked() is told.
  virtual void needs_processor(EndpointId at, const Work& work) = 0;
  // Of a receive in a GPU's memory only; within the host's memory such a copy takes no time.
  virtual void head_to_copy(const HeadToCopy& /*head*/) {}
  // A member, by its place, has done its part in forming a group; the member at `at` has the result of the reduction
  // that it gave `part` to. With an error neither comes about. Whoever forms no groups hears neither.
  virtual void joined(EndpointId /*at*/, Token /*join*/, std::uint32_t /*member*/, int /*error*/) {
    DRYFLY_UNREACHABLE("joined(): this host forms no groups");
  }
  virtual void reduced(EndpointId /*at*/, Token /*part*/, int /*error*/) {
    DRYFLY_UNREACHABLE("reduced(): this host forms no groups");
  }
  // Where the buffer of a command is that is not over; and what an RMA reaches of its target's memory. Asked only where
  // translations take time; whoever does not say has none.
  virtual DmaPages buffer_pages(EndpointId /*at*/, Token /*command*/) const { return {}; }
  virtual DmaPages target_pages(EndpointId /*source*/, Token /*rma*/) const { return {}; }
  // Information for records: an RMA operation reached its target (a message does so with received()).
  virtual void rma_delivered(const RmaCommand& command, bool on_node, std::uint32_t switch_hops) = 0;
};

}  // namespace dryfly
