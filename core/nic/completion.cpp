// When a send is complete at its source, by what it has asked for: libfabric's completion levels as the cxi provider
// keeps them. Match completion of a message that found no receive takes a notice of the target's CPU
// (cxip_notify_match); a rendezvous is complete in every sense with its done message. And how it ends when the network
// has given something up, or its target is on another one.
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

// --- what fails ---

// What was delivered takes its course, although its source does not know it. A request that was not is an error at
// the source; an eager one also when only its acknowledgements were lost, since the source cannot tell.
void Messages::failed(Parcel parcel, bool delivered) {
  if (is_control(parcel.step)) {
    if (!delivered) peer_lost(parcel.operation);
    return;
  }
  Message& message = messages_[parcel.operation];
  --message.unacknowledged;
  if (parcel.step == Step::matched && !delivered) return notice_lost(parcel.operation);
  const EndpointId source = message.command.source;
  const Token token = message.command.token;
  const bool to_target = parcel.step == Step::message;
  if (to_target) message.answered = true;
  if (to_target && delivered) settle_request(parcel.operation);
  if (to_target && message.foreign && delivered) return message.arrived ? turned_away(parcel.operation) : void();
  if (parcel.step == Step::done && message.holds_credit) {
    return delivered ? done_acknowledged(parcel.operation) : break_off(parcel.operation);
  }
  if (to_target && message.refused) return;  // its answer was lost, but it was refused: it waits for the target
  if (delivered) {
    const bool is_sent = to_target && message.protocol != Protocol::rendezvous;
    if (is_sent) message.source_told = true;
    retire_if_idle(parcel.operation);
    if (is_sent) host_.send_failed(source, token, error_unreachable);
  } else if (to_target) {
    end(parcel.operation);
    host_.dropped(token);
    host_.send_failed(source, token, error_unreachable);
  } else if (parcel.step == Step::done) {
    end(parcel.operation);
    host_.send_failed(source, token, error_unreachable);
  } else {
    break_off(parcel.operation);
  }
}

void Messages::break_off(std::uint32_t index) {
  Message& message = messages_[index];
  const bool heard = hears_of(message);
  return_credit(message);
  Received received = report_of(message);
  received.buffer_released = settle(message.receive);
  end(index);
  if (heard) host_.receive_failed(received, error_unreachable);
  host_.dropped(received.send);
  host_.send_failed(received.source, received.send, error_unreachable);
}

// C_RC_VNI_NOT_FOUND: to its target's NIC the message is of a network that is not there.
void Messages::turned_away(std::uint32_t index) {
  const EndpointId source = messages_[index].command.source;
  const Token token = messages_[index].command.token;
  end(index);
  host_.dropped(token);
  host_.send_failed(source, token, error_other_network);
}

}  // namespace dryfly::nic
