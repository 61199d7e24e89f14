// Virtual output queues: packets that wait at a switch for an output, one queue for each (output, traffic class,
// channel, input). A packet that cannot go on so never stands in the way of one that leaves by another port, in
// another class or by another channel. Room for the queues of an output is made when a packet first has to wait
// there: most outputs of a large machine stay empty.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/fabric/links.hpp"
#include "core/fabric/packet.hpp"
#include "core/fabric/pool.hpp"
#include "core/fabric/qos.hpp"

namespace dryfly::fabric {

class OutputQueues {
 public:
  explicit OutputQueues(Pool<Packet>& packets) : packets_(packets) {}

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
    ++waiting.packets;
    outputs_[output.queues].classes |= static_cast<std::uint8_t>(1U << traffic_class);
    ++output.waiting;
    output.waiting_ps += packets_[packet].transmission_ps;
  }

  bool any(const Port& output, std::uint32_t traffic_class, std::uint32_t channel) const {
    if (output.queues == none) return false;
    const std::uint32_t place = outputs_[output.queues].waiting[traffic_class];
    return place != none && waiting_[place].inputs[channel] != 0;
  }
  // The classes of which packets wait, as bits.
  std::uint32_t classes(const Port& output) const {
    return output.queues == none ? 0 : outputs_[output.queues].classes;
  }
  Arbiter& arbiter(Port& output) { return outputs_[open(output)].arbiter; }

  struct Turn {
    std::uint32_t packet = none;
    std::uint32_t input = 0;
  };

  // Takes the packet whose turn it is among the channels of a class whose bit is set in `ready`: inputs in turn,
  // packet by packet, and the channels of an input in turn. The result's packet is `none` if nothing can go.
  Turn pop(Port& output, std::uint32_t traffic_class, std::uint32_t ready) {
    Waiting& waiting = waiting_[outputs_[output.queues].waiting[traffic_class]];
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
    if (--waiting.packets == 0) outputs_[output.queues].classes &= static_cast<std::uint8_t>(~(1U << traffic_class));
    return {take(output, waiting, channel, input), input};
  }

 private:
  using Tails = std::array<std::uint32_t, Dragonfly::most_ports>;
  struct Waiting {                                      // of one class at one output
    std::array<std::uint64_t, channel_count> inputs{};  // bit i: packets of input i wait
    std::array<std::uint32_t, channel_count> tails{none, none, none, none, none};
    std::uint32_t packets = 0;
    std::uint8_t next_input = 0;
    std::uint8_t next_channel = 0;
  };
  struct Output {
    Arbiter arbiter;
    std::array<std::uint32_t, most_classes> waiting{none, none, none, none, none, none};
    std::uint8_t classes = 0;
  };

  std::uint32_t open(Port& output) {
    if (output.queues == none) {
      output.queues = static_cast<std::uint32_t>(outputs_.size());
      outputs_.emplace_back();
    }
    return output.queues;
  }

  Waiting& open(Port& output, std::uint32_t traffic_class, std::uint32_t channel) {
    std::uint32_t& place = outputs_[open(output)].waiting[traffic_class];
    if (place == none) {
      place = static_cast<std::uint32_t>(waiting_.size());
      waiting_.emplace_back();
    }
    Waiting& waiting = waiting_[place];
    if (waiting.tails[channel] == none) {
      waiting.tails[channel] = static_cast<std::uint32_t>(tails_.size());
      tails_.emplace_back();
    }
    return waiting;
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
    return first;
  }

  Pool<Packet>& packets_;
  std::vector<Output> outputs_;
  std::vector<Waiting> waiting_;
  std::vector<Tails> tails_;
};

}  // namespace dryfly::fabric
