// Puts the payload of a message on its way: the message itself from its source, the Get of the rest of a rendezvous
// from its target, and what answers that Get. Keeps nothing of its own.
#pragma once

#include <cstdint>

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
  Outbox(Transport& transport, MessageTable& messages, const NicSpec& spec)
      : transport_(transport), messages_(messages), spec_(spec) {}

  void launch(std::uint32_t message);
  // The target's NIC asks for the rest of a rendezvous.
  void get(std::uint32_t message);
  void answer_get(std::uint32_t message);

 private:
  Transport& transport_;
  MessageTable& messages_;
  const NicSpec& spec_;
};

}  // namespace dryfly::nic
