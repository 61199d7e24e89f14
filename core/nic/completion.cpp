// When a send is complete at its source, by what it has asked for: libfabric's completion levels as the cxi provider
// keeps them. Match completion of a message that found no receive takes a notice of the target's CPU
// (cxip_notify_match); a rendezvous is complete in every sense with its done message.
#include <utility>

#include "core/nic/messages.hpp"

namespace dryfly::nic {

// An acknowledgement can be quicker than the ingress stage, and says whether the message was expected.
bool Messages::complete_by_acknowledgement(const Message& message) const {
  if (message.protocol == Protocol::rendezvous) return false;
  if (message.command.complete_when == Completeness::transmitted) return true;
  return message.arrived && (message.command.complete_when == Completeness::delivered || !message.unexpected);
}

void Messages::tell_source_once(std::uint32_t index) {
  Message& message = messages_[index];
  if (std::exchange(message.source_told, true)) return;
  host_.sent(message.command.source, message.command.token);
}

void Messages::owe_notice(std::uint32_t index) {
  Message& message = messages_[index];
  const bool owed = message.command.complete_when == Completeness::matched && !message.source_told &&
                    !message.on_node && message.protocol != Protocol::rendezvous;
  if (!owed) return;
  ++message.unacknowledged;
  ask_processor(message.command.target,
                {.kind = WorkKind::tell_match, .item = index, .life = message.life, .count = 1});
}

void Messages::notice_lost(std::uint32_t index) {
  Message& message = messages_[index];
  const EndpointId source = message.command.source;
  const Token token = message.command.token;
  --message.unacknowledged;
  message.source_told = true;
  retire_if_idle(index);
  host_.send_failed(source, token, error_unreachable);
}

}  // namespace dryfly::nic
