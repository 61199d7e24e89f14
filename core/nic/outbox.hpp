// Chooses the protocol of a message and puts its payload on its way: the message itself from its source, the Get of
// the rest of a rendezvous from its target, and what answers that Get. Keeps what each end-point has set of it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/nic/message.hpp"
#include "core/nic/transport.hpp"

namespace dryfly::nic {

inline Journey to_target(const Message& message, Bytes size, bool ordered) {
  return {message.command.source, message.command.target, size, message.command.traffic_class, ordered};
}
inline Journey to_source(const Message& message) {
  return {message.command.target, message.command.source, Bytes{0}, message.answer_class, false};
}

class Outbox {
 public:
  Outbox(Transport& transport, const Host& host, MessageTable& messages, const NicSpec& spec)
      : transport_(transport), host_(host), messages_(messages), spec_(spec) {}

  void open(EndpointId endpoint, const EndpointSettings& settings);
  // What the message will be: its protocol, and how much of it travels first.
  void choose_protocol(Message& message) const;
  void launch(std::uint32_t message);
  // The target's NIC asks for the rest of a rendezvous.
  void get(std::uint32_t message);
  void answer_get(std::uint32_t message);

 private:
  // What an end-point sends by which protocol.
  struct Limits {
    Bytes eager_max;
    Bytes rendezvous_head;
    bool notifies_done = false;
  };
  Limits limits_by_memory(const Limits& source) const;
  static bool is_handed_over(const Message& message);
  // Of what its source's NIC fetches, from there on.
  DmaPages pages_of(const Message& message, Bytes from) const;

  Transport& transport_;
  const Host& host_;
  MessageTable& messages_;
  const NicSpec& spec_;
  std::vector<Limits> limits_;  // by end-point
};

}  // namespace dryfly::nic
