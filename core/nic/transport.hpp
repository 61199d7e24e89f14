// Carries parcels between end-points: through the NIC's egress stage, the network and the ingress stage, or by the
// memory of a node, where both have it. Models the path of a command (docs/model/nic-protocols.md#path-of-a-command):
// the NIC takes commands at a limited rate, an inline payload is in the command, any other is fetched from host memory
// first; so is an inline command that is too long for the region which CPUs write commands to (libcxi: one of 256 B).
// What a NIC answers by itself needs no command. A message or request is acknowledged when the target has matched it,
// for the acknowledgement says what became of it (docs/model/nic-protocols.md#acknowledged-when-matched), so its sender
// learns of it one ingress latency later.
//
// An end-point's commands leave in the order given, although an inline command is ready sooner than a DMA one
// before it: together with the network's order per pair of NICs this is what matching in the order sent rests on.
// What differs by where in the node a NIC is stands in HostPaths. Left out: command-queue depth, several command queues
// of one end-point, and that a queue which is not empty is fetched whatever the size of its commands.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/nic/counter_bank.hpp"
#include "core/nic/fifo.hpp"
#include "core/nic/host_path.hpp"
#include "core/nic/nic.hpp"
#include "core/nic/node_memory.hpp"
#include "core/nic/parcel.hpp"

namespace dryfly::nic {

// What the NIC has to read from its host's memory before it can send; a command with its payload inside is one thing.
enum class Fetched : std::uint8_t { nothing, command, payload };

class Transport final : public Handler, public TransferSink {
 public:
  Transport(Engine& engine, Carrier& network, const NicSpec& spec, Recipient& recipient);

  // An end-point that is opened again stays on its node.
  void open(EndpointId endpoint, NicId nic, NodeId node, const MemoryPlace& place = {},
            const EndpointSettings& settings = {});
  // What is under way goes on as it was.
  void move(EndpointId endpoint, const MemoryPlace& place);
  HostPaths& paths() { return paths_; }
  NicId nic_of(EndpointId endpoint) const { return port(endpoint).nic; }
  // `a` must have been opened; it does not matter whether it is open still. An address never opened is on no node; a
  // receive may still name it.
  bool on_node(EndpointId a, EndpointId b) const {
    return b.value < ports_.size() && ports_[b.value] && port(a).node == ports_[b.value]->node;
  }
  // What goes from one to the other does so by the memory of their node.
  bool by_memory(EndpointId a, EndpointId b) const {
    return port(a).in_memory && on_node(a, b) && ports_[b.value]->in_memory;
  }
  bool same_network(EndpointId a, EndpointId b) const { return port(a).network == port(b).network; }

  // By command of the CPU at `from`: paced, and after the egress latency. Where that CPU does not write commands to the
  // NIC, each is fetched, and a payload after it.
  void send_command(const Journey& journey, Parcel parcel, Fetched fetched);
  // By the NIC itself: at once, but the Get that the match of a rendezvous has called for, which takes a latency.
  void send(const Journey& journey, Parcel parcel);
  // By the NIC itself, after fetching the payload from host memory: an answer to a Get (Answering).
  void fetch_and_send(const Journey& journey, Parcel parcel);
  // An acknowledgement is here that the target's NIC could give only when it had placed the payload and read from the
  // memory behind it, as delivery completion asks: flushed() comes as much later.
  void flush(EndpointId target, Parcel parcel);
  // Nowhere: arrived() at the same place after the time that placing a payload takes, or `at_once` in an event of its
  // own.
  void place(Parcel parcel, bool at_once);
  // By memory: arrived() when a core has copied the payload and the other sees it; each core one thing after the other.
  // What is placed its target copies out of a segment.
  void copy(const Journey& journey, Parcel parcel);

  // Nowhere: arrived() after that time.
  void hold(Parcel parcel, Duration time);

  // Of the NIC that the end-point is on.
  NicCounters& counters_of(EndpointId endpoint) { return counters_.at(port(endpoint).counters); }
  CounterBank& counters() { return counters_; }
  // Of these stages.
  struct Events {
    std::uint64_t scheduled = 0;
    std::uint64_t handled = 0;
  };
  const Events& events() const { return events_; }

  void handle(Event event) override;
  void prefetch(Event event, unsigned stage) const override;
  void delivered(std::uint32_t handle, std::uint32_t switch_hops) override;
  void acknowledged(std::uint32_t handle) override;
  void failed(std::uint32_t handle, bool delivered) override;

 private:
  // The stages in the order in which they run at one instant. An event names the stage and, where each end-point
  // has its own queue, the end-point. It stands for the head of that queue: equal events are interchangeable.
  enum class Stage : std::uint8_t {
    ingress,
    handover,
    copies,
    fetch,
    egress,
    own_fetch,
    own_ingress,
    flush,
    settled,
    held,
    crossing,
    copies_to_region,  // of the same socket
    copies_to_socket,
    next_copy,
    look,  // at a copy that others slow
    get
  };
  static constexpr std::array<Stage, Nearness::distances> copies_of = {Stage::copies, Stage::copies_to_region,
                                                                       Stage::copies_to_socket};

  static constexpr unsigned stage_shift = 32;  // in an event's key
  static Stage stage_of(Event event) { return static_cast<Stage>((event.key >> stage_shift) & 0xf); }

  struct Arrival {
    Parcel parcel;
    std::uint32_t switch_hops = 0;
  };
  struct Copy {
    Parcel parcel;
    Bytes size;
    CopyWay way;
  };
  struct Port {
    NicId nic;
    NodeId node;
    std::uint16_t network = 0;
    bool writes_commands = true;
    bool in_memory = false;
    std::uint32_t counters = 0;  // where those of its NIC are
    Fifo<Transfer> egress;
    Instant egress_until;  // when the last of it is ready
    CopyPlace at;
    std::array<Fifo<Parcel>, Nearness::distances> copies;  // by its core, by how far away they are seen
    Instant copies_until;                                  // when the last of them is over
    Copy copy;                                             // that is under way, and others slow
    bool is_copying = false;
    std::size_t copy_place = 0;  // of it in NodeMemory
    Fifo<Copy> later_copies;     // what others share with these is theirs once they have begun
    Fifo<Parcel> flushes;        // by the target
    Instant flush_until;         // when the last of them is over
    // Where the way to memory is not the plain one, the end-point has these stages of its own.
    MemoryPath place;
    Fifo<Transfer> own_fetch;
    Instant own_fetch_until;
    Fifo<Arrival> own_ingress;
    Instant own_ingress_until;
  };

  Port& port(EndpointId endpoint) const {
    DRYFLY_CHECK(endpoint.value < ports_.size() && ports_[endpoint.value]);
    return *ports_[endpoint.value];
  }
  Transfer transfer(const Journey& journey, Parcel parcel);
  void follow(EndpointId by, const Copy& copy, const NodeMemory::Copying& copying);
  void submit(const Transfer& transfer);
  // Something waits to cross this link between sockets, which may be free now.
  void cross(std::uint32_t link);
  void arrive_by_own_way(Port& target, const Arrival& arrival, const Landing& landing);
  void schedule(Instant at, Stage stage, EndpointId endpoint = {});

  Engine& engine_;
  Carrier& network_;
  NicSpec spec_;
  Recipient& recipient_;
  CounterBank counters_;
  HostPaths paths_;
  NodeMemory memory_;
  bool paths_differ_;                         // some end-point's way is not the plain one
  bool cores_copy_ = false;                   // some end-point is in memory
  std::vector<std::unique_ptr<Port>> ports_;  // by end-point
  std::vector<Instant> next_command_;         // by NIC: when it may take another
  std::vector<Instant> next_answer_;          // by NIC: when it may fetch for another
  Fifo<Arrival> ingress_;                     // these five have one latency each, so one queue serves all NICs
  Fifo<Parcel> settled_;  // their acknowledgements are here, less the latency of the target's ingress
  Fifo<Parcel> handover_;
  Fifo<Transfer> fetch_;
  Fifo<Transfer> gets_;
  Events events_;
};

}  // namespace dryfly::nic
