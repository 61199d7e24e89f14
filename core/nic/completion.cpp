#include "core/nic/completion.hpp"

#include <utility>

#include "core/nic/totals.hpp"

namespace dryfly::nic {

void Completion::acknowledged(Parcel parcel) {
  if (is_control(parcel.step)) return;
  Message& message = messages_[parcel.item];
  messages_.acknowledge(parcel.item);
  if (parcel.step == Step::message) {
    message.note_answered();
    flow_control_.settle_request(parcel.item);
    if (message.state.is_one_of(any_of(MessageState::refused, MessageState::paused))) return;
    if (message.foreign) return told_of_turning_away(parcel.item);
  }
  if (parcel.step == Step::done && message.state == MessageState::told) return done_acknowledged(parcel.item);
  const EndpointId source = message.command.source;
  const Token token = message.command.token;
  const bool is_sent = parcel.step == Step::message && complete_by_acknowledgement(message) && message.note_told_once();
  messages_.retire_if_idle(parcel.item);
  if (is_sent) host_.sent(source, token);
}

void Completion::placed(std::uint32_t index) {
  const Message& message = messages_[index];
  if (!inboxes_.hears_of(message)) return drop(index);
  if (message.notifies_done && message.holds_credit()) return software_gets_.tell_done(index);
  report(index);
}

void Completion::report(std::uint32_t index) {
  const Message& message = messages_[index];
  software_gets_.return_credit(message);
  Received received = report_of(message);
  received.buffer_released = inboxes_.settle(message.receive);
  count(totals_, message.protocol, on_node(message), message.switch_hops, message.command.size);
  const bool tell_source = finish(index);
  host_.received(received);
  if (tell_source) host_.sent(received.source, received.send);
}

Received Completion::report_of(const Message& message) const {
  DRYFLY_CHECK(message.receive != none);
  return {.at = message.command.target,
          .source = message.command.source,
          .receive = inboxes_.receive(message.receive).command.token,
          .send = message.command.token,
          .envelope = message.command.envelope,
          .size = message.command.size,
          .offset = message.offset,
          .protocol = message.protocol,
          .on_node = on_node(message),
          .switch_hops = message.switch_hops,
          .matched_in_software = message.in_software() && !message.rendezvous(),
          .lies_in_buffer = message.lay_in_buffer() && !message.rendezvous()};
}

void Completion::drop(std::uint32_t index) {
  const Message& message = messages_[index];
  software_gets_.return_credit(messages_[index]);
  const EndpointId source = message.command.source;
  const Token token = message.command.token;
  if (message.receive != none) inboxes_.settle(message.receive);
  inboxes_.leave_list(messages_[index]);
  const bool tell_source = finish(index);
  host_.dropped(source, token);
  if (tell_source) host_.sent(source, token);
}

bool Completion::finish(std::uint32_t index) {
  Message& message = messages_[index];
  if (message.rendezvous() && !message.by_memory && message.state != MessageState::told) {
    message.state.move_to(MessageState::closing);
    messages_.expect_acknowledgement(index);
    transport_.send(to_source(message), {Step::done, index});
    return false;
  }
  const bool tell_source = message.by_memory && message.note_told_once();
  messages_.end(index);
  return tell_source;
}

void Completion::done_acknowledged(std::uint32_t index) {
  Message& message = messages_[index];
  const EndpointId source = message.command.source;
  const Token token = message.command.token;
  message.note_told();
  if (inboxes_.hears_of(message)) {
    report(index);
  } else {
    inboxes_.settle(message.receive);
    messages_.end(index);
    host_.dropped(source, token);
  }
  host_.sent(source, token);
}

// An acknowledgement can be quicker than the ingress stage, and says whether the message was expected.
bool Completion::complete_by_acknowledgement(const Message& message) const {
  if (message.rendezvous()) return false;
  if (message.command.complete_when == Completeness::transmitted) return true;
  return message.decided() && (message.command.complete_when == Completeness::delivered || !message.came_unexpected);
}

void Completion::tell_source_once(std::uint32_t index) {
  Message& message = messages_[index];
  if (message.note_told_once()) host_.sent(message.command.source, message.command.token);
}

void Completion::owe_notice(std::uint32_t index) {
  Message& message = messages_[index];
  const bool owed = message.command.complete_when == Completeness::matched && !message.source_told() &&
                    !message.by_memory && !message.rendezvous();
  if (!owed) return;
  messages_.expect_acknowledgement(index);
  inboxes_.ask_processor(message.command.target,
                         {.kind = WorkKind::tell_match, .item = index, .life = message.life, .count = 1});
}

void Completion::give_notice(std::uint32_t index) {
  Message& message = messages_[index];
  messages_.expect_acknowledgement(index);
  message.answer_class = software_gets_.class_of(message.command.target);
  transport_.send_command(to_source(message), {Step::matched, index}, Fetched::nothing);
}

void Completion::notice_lost(std::uint32_t index) {
  Message& message = messages_[index];
  const EndpointId source = message.command.source;
  const Token token = message.command.token;
  const bool is_news = message.note_told_once();
  messages_.retire_if_idle(index);
  if (is_news) host_.send_failed(source, token, error_unreachable);
}

// What was delivered takes its course, although its source does not know it. A request that was not is an error at
// the source; an eager one also when only its acknowledgements were lost, since the source cannot tell.
void Completion::failed(Parcel parcel, bool delivered) {
  if (is_control(parcel.step)) {
    if (!delivered) flow_control_.peer_lost(parcel.item);
    return;
  }
  Message& message = messages_[parcel.item];
  messages_.acknowledge(parcel.item);
  if (parcel.step == Step::matched && !delivered) return notice_lost(parcel.item);
  const EndpointId source = message.command.source;
  const Token token = message.command.token;
  const bool to_target = parcel.step == Step::message;
  if (to_target) message.note_answered();
  if (to_target && delivered) flow_control_.settle_request(parcel.item);
  if (to_target && message.foreign && delivered) return told_of_turning_away(parcel.item);
  if (parcel.step == Step::done && message.state == MessageState::told) {
    return delivered ? done_acknowledged(parcel.item) : break_off(parcel.item);
  }
  if (to_target && message.state == MessageState::refused)
    return;  // its answer was lost, but it was refused: it waits for the target
  if (delivered) {
    const bool ends = to_target && !message.rendezvous() && message.note_told_once();
    messages_.retire_if_idle(parcel.item);
    if (ends) host_.send_failed(source, token, error_unreachable);
  } else if (to_target) {
    const bool is_news = message.note_told_once();
    messages_.end(parcel.item);
    host_.dropped(source, token);
    if (is_news) host_.send_failed(source, token, error_unreachable);
  } else if (parcel.step == Step::done) {
    message.note_told();
    messages_.end(parcel.item);
    host_.send_failed(source, token, error_unreachable);
  } else {
    break_off(parcel.item);
  }
}

void Completion::break_off(std::uint32_t index) {
  Message& message = messages_[index];
  const bool heard = inboxes_.hears_of(message);
  software_gets_.return_credit(message);
  Received received = report_of(message);
  received.buffer_released = inboxes_.settle(message.receive);
  message.note_told();
  messages_.end(index);
  if (heard) host_.receive_failed(received, error_unreachable);
  host_.dropped(received.source, received.send);
  host_.send_failed(received.source, received.send, error_unreachable);
}

void Completion::turned_away(std::uint32_t index) {
  const EndpointId source = messages_[index].command.source;
  const Token token = messages_[index].command.token;
  messages_[index].note_told();
  messages_.end(index);
  host_.dropped(source, token);
  host_.send_failed(source, token, error_other_network);
}

void Completion::told_of_turning_away(std::uint32_t index) {
  if (messages_[index].state == MessageState::turned_away) turned_away(index);
}

// What software says of a restricted Get both ends hear with its acknowledgement.
void Completion::done_arrived(std::uint32_t index) {
  if (messages_[index].state == MessageState::told) return;
  const EndpointId source = messages_[index].command.source;
  const Token token = messages_[index].command.token;
  messages_[index].note_told();
  messages_.end(index);
  host_.sent(source, token);
}

}  // namespace dryfly::nic
