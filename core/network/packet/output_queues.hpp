// Virtual output queues: packets that wait at a switch for an output, one queue for each (output, traffic class,
// channel, input). A packet that cannot go on so never stands in the way of one that leaves by another port, in
// another class or by another channel. Room for the queues of an output is made when a packet first has to wait
// there: most outputs of a large machine stay empty.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "core/network/fabric/qos.hpp"
#include "core/network/packet/links.hpp"
#include "core/network/packet/packet.hpp"
#include "core/network/packet/shared_pool.hpp"
#include "core/unit/fetch.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly::fabric {

class OutputQueues {
 public:
  explicit OutputQueues(SharedPool<Packet>& packets) : packets_(packets) {}

  void push(Port& output, std::uint32_t channel, std::uint32_t input, std::uint32_t packet) {
    const std::uint32_t traffic_class = packets_[packet].traffic_class;
    Waiting& waiting = open(output, traffic_class, channel);
    std::uint32_t& last = tail(waiting, channel, input);
    const std::uint64_t bit = std::uint64_t{1} << input;
    if ((waiting.inputs[channel] & bit) == 0) {
      waiting.inputs[channel] |= bit;
      packets_[packet].next = packet;
    } else {
      packets_[packet].next = packets_[last].next;
      packets_[last].next = packet;
    }
    last = packet;
    output.classes = (output.classes | (1U << traffic_class)) & all_classes;
    ++output.waiting;
    output.waiting_ps += packets_[packet].transmission_ps;
    if (output.leads_to_nic) outputs_[output.queues].waiting_ps[traffic_class] += packets_[packet].transmission_ps;
  }

  bool any(const Port& output, std::uint32_t traffic_class, std::uint32_t channel) const {
    return ((output.classes >> traffic_class) & 1) != 0 &&
           waiting(outputs_[output.queues], traffic_class).inputs[channel] != 0;
  }
  Arbiter& arbiter(Port& output) { return outputs_[open(output)].arbiter; }
  // Time of transmission of the packets of a class that wait for an output to a NIC.
  std::uint64_t waiting_ps(const Port& output, std::uint32_t traffic_class) const {
    return output.queues == none ? 0 : outputs_[output.queues].waiting_ps[traffic_class];
  }

  // Fetch the queues of the port into the cache; then the tail of the one that is likely to be next.
  void prefetch(const Port& port) const {
    if (port.queues == none) return;
    const Output& output = outputs_[port.queues];
    fetch_line(&output.first);
    fetch_line(&output.arbiter);
    fetch_line(&output.place);
  }
  void prefetch_first_in_line(const Port& port) const {
    if (port.queues == none) return;
    const Waiting& waiting = outputs_[port.queues].first;
    for (std::uint32_t channel = 0; channel < channel_count; ++channel) {
      const std::uint64_t inputs = waiting.inputs[channel];
      if (inputs == 0) continue;
      const auto ahead = static_cast<std::uint32_t>(std::countr_zero(std::rotr(inputs, waiting.next_input)));
      fetch_line(&tails_[waiting.tails[channel]][(waiting.next_input + ahead) % 64]);
    }
  }

  struct Turn {
    std::uint32_t packet = none;
    std::uint32_t input = 0;
  };

  // Takes the packet whose turn it is among the channels of a class whose bit is set in `ready`: inputs in turn,
  // packet by packet, and the channels of an input in turn. The result's packet is `none` if nothing can go.
  Turn pop(Port& output, std::uint32_t traffic_class, std::uint32_t ready) {
    Waiting& waiting = this->waiting(outputs_[output.queues], traffic_class);
    std::uint64_t candidates = 0;
    for (std::uint32_t channel = 0; channel < channel_count; ++channel) {
      if ((ready >> channel) & 1) candidates |= waiting.inputs[channel];
    }
    if (candidates == 0) return {};
    const auto ahead = static_cast<std::uint32_t>(std::countr_zero(std::rotr(candidates, waiting.next_input)));
    const std::uint32_t input = (waiting.next_input + ahead) % 64;
    std::uint32_t channel = waiting.next_channel;
    while (((ready >> channel) & 1) == 0 || ((waiting.inputs[channel] >> input) & 1) == 0) {
      channel = (channel + 1) % channel_count;
    }
    waiting.next_input = static_cast<std::uint8_t>((input + 1) % 64);
    waiting.next_channel = static_cast<std::uint8_t>((channel + 1) % channel_count);
    const std::uint32_t packet = take(output, waiting, channel, input);
    if (waiting.empty()) output.classes = output.classes & ~(1U << traffic_class) & all_classes;
    return {packet, input};
  }

 private:
  using Tails = std::array<std::uint32_t, Dragonfly::most_ports>;
  struct alignas(64) Waiting {                          // of one class at one output
    std::array<std::uint64_t, channel_count> inputs{};  // bit i: packets of input i wait
    std::array<std::uint32_t, channel_count> tails{none, none, none, none, none};
    std::uint8_t next_input = 0;
    std::uint8_t next_channel = 0;
    bool empty() const { return (inputs[0] | inputs[1] | inputs[2] | inputs[3] | inputs[4]) == 0; }
  };
  static_assert(sizeof(Waiting) == 64 && channel_count == 5);
  // The class that waited first has its place in the output itself, as nearly all traffic is of one.
  struct Output {
    Waiting first;
    Arbiter arbiter;
    std::array<std::uint32_t, most_classes> place{none, none, none, none, none, none};  // in waiting_, or `within`
    bool first_in_use = false;
    std::array<std::uint64_t, most_classes> waiting_ps{};  // where it leads to a NIC
  };
  static constexpr std::uint32_t within = none - 1;
  static constexpr std::uint32_t all_classes = (1U << most_classes) - 1;

  std::uint32_t open(Port& output) {
    if (output.queues == none) {
      output.queues = static_cast<std::uint32_t>(outputs_.size());
      outputs_.emplace_back();
    }
    return output.queues;
  }

  Waiting& open(Port& port, std::uint32_t traffic_class, std::uint32_t channel) {
    Output& output = outputs_[open(port)];
    std::uint32_t& place = output.place[traffic_class];
    if (place == none && !output.first_in_use) {
      place = within;
      output.first_in_use = true;
    } else if (place == none) {
      place = static_cast<std::uint32_t>(waiting_.size());
      waiting_.emplace_back();
    }
    Waiting& waiting = this->waiting(output, traffic_class);
    if (waiting.tails[channel] == none) {
      waiting.tails[channel] = static_cast<std::uint32_t>(tails_.size());
      tails_.emplace_back();
    }
    return waiting;
  }

  const Waiting& waiting(const Output& output, std::uint32_t traffic_class) const {
    const std::uint32_t place = output.place[traffic_class];
    return place == within ? output.first : waiting_[place];
  }
  Waiting& waiting(Output& output, std::uint32_t traffic_class) {
    const std::uint32_t place = output.place[traffic_class];
    return place == within ? output.first : waiting_[place];
  }

  // A queue is a ring named by its last packet.
  std::uint32_t& tail(const Waiting& waiting, std::uint32_t channel, std::uint32_t input) {
    return tails_[waiting.tails[channel]][input];
  }

  std::uint32_t take(Port& output, Waiting& waiting, std::uint32_t channel, std::uint32_t input) {
    const std::uint32_t last = tail(waiting, channel, input);
    const std::uint32_t first = packets_[last].next;
    if (first == last) {
      waiting.inputs[channel] &= ~(std::uint64_t{1} << input);
    } else {
      packets_[last].next = packets_[first].next;
    }
    --output.waiting;
    output.waiting_ps -= packets_[first].transmission_ps;
    if (output.leads_to_nic) {
      outputs_[output.queues].waiting_ps[packets_[first].traffic_class] -= packets_[first].transmission_ps;
    }
    return first;
  }

  SharedPool<Packet>& packets_;
  LargeVector<Output> outputs_;
  LargeVector<Waiting> waiting_;
  LargeVector<Tails> tails_;
};

}  // namespace dryfly::fabric
