#include "core/nic/messages.hpp"

#include <algorithm>
#include <utility>

#include "core/unit/fetch.hpp"

namespace dryfly::nic {

namespace {

Label label_of(const SendCommand& command) { return {command.envelope.tagged, command.source, command.envelope.tag}; }

Pattern pattern_of(const ReceiveCommand& command) {
  return {command.tagged, command.any_source, command.source, command.tag, command.ignore};
}

Pattern pattern_of(const PeekCommand& command) {
  return {command.tagged, command.any_source, command.source, command.tag, command.ignore};
}

// Of a receive that has matched something: whether it takes no more.
bool full(const ReceiveCommand& command, Bytes used) {
  return !command.multi_receive || command.capacity - used < std::max(command.min_free, Bytes{1});
}

}  // namespace

Messages::Messages(Transport& transport, Host& host, const NicSpec& spec, NicTotals& totals)
    : transport_(transport),
      host_(host),
      totals_(totals),
      inboxes_(transport, host, spec, totals),
      outbox_(transport, host, messages_, spec),
      flow_control_(transport, host, totals, messages_, inboxes_, outbox_),
      pauses_(totals, transport.counters(), messages_, inboxes_),
      software_gets_(transport, spec, messages_, inboxes_),
      completion_(transport, host, totals, messages_, inboxes_, software_gets_, flow_control_) {}

void Messages::open(EndpointId endpoint, NicId nic, const EndpointSettings& settings) {
  inboxes_.open(endpoint, nic, settings);
  outbox_.open(endpoint, settings);
  flow_control_.open(endpoint, settings);
  software_gets_.open(endpoint, settings);
}

void Messages::restart() {
  messages_.restart();
  inboxes_.restart();
}

// A receive that is still in progress is found to be from an earlier life when its payload is there.
void Messages::close(EndpointId endpoint) {
  Inbox& closed = inboxes_.inbox(endpoint);
  DRYFLY_CHECK(closed.open);
  closed.open = false;
  for (const std::uint32_t slot : closed.posted.slots()) inboxes_.unpost(closed, closed.posted.value(slot));
  std::vector<std::uint32_t> gone;
  for (std::uint32_t slot = closed.unexpected.oldest(); slot != no_match; slot = closed.unexpected.oldest()) {
    gone.push_back(closed.unexpected.value(slot));
    closed.unexpected.remove(slot);
  }
  for (const auto& [claim, message] : closed.claimed) gone.push_back(message);
  closed.claimed.clear();
  closed.waiting.clear();
  for (const std::uint32_t message : gone) completion_.drop(message);
  for (const std::uint32_t message : software_gets_.abandoned_at(endpoint)) completion_.drop(message);
  closed.portal.close();
  go_on(closed.nic);
  flow_control_.close(endpoint);
}

void Messages::send(const SendCommand& command) {
  const std::uint32_t index = messages_.acquire();
  Message& message = messages_[index];
  message.command = command;
  message.life = messages_.new_life();
  message.number = ++sends_;
  message.by_memory = transport_.by_memory(command.source, command.target);
  outbox_.choose_protocol(message);
  message.foreign = !transport_.same_network(command.source, command.target);
  message.answer_class = command.traffic_class;
  if (!message.by_memory && flow_control_.withholds(index)) return;
  outbox_.launch(index);
}

void Messages::receive(const ReceiveCommand& command) {
  Inbox& at = inboxes_.inbox(command.at);
  DRYFLY_CHECK(at.open);
  const std::uint32_t index = inboxes_.new_receive(command, at);
  Receive& receive = inboxes_.receive(index);
  transport_.counters_of(command.at).add(Counter::lpe_append_cmds);
  const Pattern pattern = pattern_of(command);
  while (!receive.matched || !full(command, receive.used)) {
    const std::uint32_t slot = at.unexpected.oldest_for(pattern);
    if (slot == no_match) {
      receive.slot = at.posted.post(pattern, index);
      receive.posted = true;
      inboxes_.append(at, index);
      inboxes_.note_list_entries(at);
      inboxes_.ask_processor(command.at);
      return;
    }
    const std::uint32_t message = at.unexpected.value(slot);
    at.unexpected.remove(slot);
    match_unexpected(at, index, message);
  }
}

void Messages::receive_claimed(const ReceiveCommand& command, Token claim) {
  Inbox& at = inboxes_.inbox(command.at);
  const auto claimed = at.claimed.find(claim);
  DRYFLY_CHECK(claimed != at.claimed.end());
  const std::uint32_t message = claimed->second;
  at.claimed.erase(claimed);
  match_unexpected(at, inboxes_.new_receive(command, at), message);
}

void Messages::peek(const PeekCommand& command) {
  Inbox& at = inboxes_.inbox(command.at);
  DRYFLY_CHECK(at.open);
  std::uint32_t message = none;
  const auto claimed = command.discard ? at.claimed.find(command.token) : at.claimed.end();
  if (claimed != at.claimed.end()) {
    message = claimed->second;
    at.claimed.erase(claimed);
  } else if (const std::uint32_t slot = at.unexpected.oldest_for(pattern_of(command)); slot != no_match) {
    message = at.unexpected.value(slot);
    if (command.claim || command.discard) at.unexpected.remove(slot);
  }
  if (message == none && command.waits) {
    at.waiting.push_back(command);
  } else {
    answer(at, command, message);
  }
}

void Messages::answer(Inbox& at, const PeekCommand& command, std::uint32_t message) {
  Peeked peeked{.at = command.at, .peek = command.token};
  if (message != none) {
    const SendCommand& found = messages_[message].command;
    peeked.found = true;
    peeked.source = found.source;
    peeked.envelope = found.envelope;
    peeked.size = found.size;
    peeked.send = found.token;
    if (command.claim && !command.discard) DRYFLY_CHECK(at.claimed.emplace(command.token, message).second);
  }
  host_.peeked(peeked);
  if (message != none && command.discard) {
    completion_.owe_notice(message);
    completion_.drop(message);
  }
}

void Messages::answer_waiting(Inbox& at) {
  for (auto waiting = at.waiting.begin(); waiting != at.waiting.end(); ++waiting) {
    const std::uint32_t slot = at.unexpected.oldest_for(pattern_of(*waiting));
    if (slot == no_match) continue;
    const PeekCommand command = *waiting;
    at.waiting.erase(waiting);
    const std::uint32_t message = at.unexpected.value(slot);
    if (command.claim || command.discard) at.unexpected.remove(slot);
    return answer(at, command, message);
  }
}

// A multi-receive buffer with messages still being placed is not reported as cancelled: the last of them releases
// it, so that its owner hears of its end once.
void Messages::cancel(EndpointId endpoint, Token token) {
  Inbox& at = inboxes_.inbox(endpoint);
  const std::uint32_t slot =
      at.posted.find([&](std::uint32_t receive) { return inboxes_.receive(receive).command.token == token; });
  if (slot == no_match) return;
  const std::uint32_t receive = at.posted.value(slot);
  const bool idle = inboxes_.receive(receive).in_progress == 0;
  inboxes_.unpost(at, receive);
  if (idle) host_.cancelled(endpoint, token);
}

void Messages::arrived(Parcel parcel, std::uint32_t switch_hops) {
  switch (parcel.step) {
    case Step::message:
      return request_arrived(parcel.item, switch_hops);
    case Step::get_request:
      return outbox_.answer_get(parcel.item);
    case Step::get_data:
      messages_[parcel.item].switch_hops = switch_hops;
      return completion_.placed(parcel.item);
    case Step::placement:
      return completion_.placed(parcel.item);
    case Step::drop_notice:
    case Step::resume:
    case Step::no_room:
      return flow_control_.arrived(parcel);
    case Step::matched:
      messages_.acknowledge(parcel.item);
      completion_.tell_source_once(parcel.item);
      return messages_.retire_if_idle(parcel.item);
    case Step::done:
      return completion_.done_arrived(parcel.item);
    default:
      DRYFLY_UNREACHABLE("a step of messages");
  }
}

Landing Messages::landing_of(Parcel parcel) const {
  if (is_control(parcel.step)) return flow_control_.landing_of(parcel);
  const Message& message = messages_[parcel.item];
  if (parcel.step != Step::get_data) return {message.command.target, message.head};
  return {message.command.target, message.command.size - message.head, message.target_gpu,
          pages_of(message, message.head)};
}

void Messages::request_arrived(std::uint32_t index, std::uint32_t switch_hops) {
  Message& message = messages_[index];
  message.switch_hops = switch_hops;
  message.state.move_to(MessageState::arrived);
  if (message.foreign) {
    flow_control_.settle_request(index);
    if (message.by_memory || message.answered()) return completion_.turned_away(index);
    return message.state.move_to(MessageState::turned_away);
  }
  Inbox& target = inboxes_.inbox(message.command.target);
  if (pauses_.waits_in_line(index)) return;
  if (!target.open) {
    flow_control_.settle_request(index);
    return completion_.drop(index);
  }
  const std::uint32_t slot = target.posted.oldest_for(label_of(message.command));
  if (!message.by_memory) {
    const bool by_entry = slot != no_match && inboxes_.receive(target.posted.value(slot)).holds_entry;
    const Portal::Admission admission = target.portal.admit(by_entry, slot != no_match, message.head);
    if (admission == Portal::Admission::refused) return flow_control_.refuse(index);
    if (admission == Portal::Admission::paused) return pauses_.pause(index);
    flow_control_.settle_request(index);
    if (admission == Portal::Admission::unexpected) message.header = HeaderAt::entry;
    if (admission == Portal::Admission::software) message.header = HeaderAt::request_list;
    count_match(message, by_entry);
    inboxes_.ask_processor(message.command.target);
  }
  message.came_unexpected = slot == no_match;
  const bool in_segment = message.by_memory && !message.rendezvous();
  if (in_segment && message.command.complete_when != Completeness::matched) completion_.tell_source_once(index);
  if (message.answered() && completion_.complete_by_acknowledgement(message)) completion_.tell_source_once(index);
  if (slot != no_match) return match_expected(target, target.posted.value(slot), index);
  add_unexpected(target, index);
  // Software looks at every request that comes to it.
  if (message.rendezvous() && message.in_software()) software_gets_.ask_to_look(index);
  answer_waiting(target);
}

void Messages::match_expected(Inbox& at, std::uint32_t receive, std::uint32_t index) {
  match(at, receive, index);
  Message& message = messages_[index];
  if (!message.rendezvous()) {
    message.state.move_to(MessageState::placing);
    if (message.by_memory) return copy_out(index);
    const Duration lag = write_head(message);
    if (lag != Duration{}) return transport_.hold({Step::placement, index}, lag);
    completion_.placed(index);
    return;
  }
  if (!message.by_memory) write_head(message);
  ask_for_copy_of_head(message);
  if (software_gets_.got_by_processor(message)) {
    software_gets_.ask_for_get(index);
  } else {
    outbox_.get(index);
  }
}

// Of the receive's buffer, from there on.
DmaPages Messages::pages_of(const Message& message, Bytes from) const {
  if (!transport_.paths().translations().modelled()) return {};
  const Token receive = inboxes_.receive(message.receive).command.token;
  return host_.buffer_pages(message.command.target, receive).behind((message.offset + from).count);
}

// Into a GPU's memory, whose link has to carry it, or behind its translations; nothing else waits for the head of a
// rendezvous.
Duration Messages::write_head(const Message& message) {
  if (message.lay_in_buffer()) return {};
  const EndpointId target = message.command.target;
  if (transport_.paths().translations().modelled() && message.target_gpu == 0) {
    const DmaPages pages = pages_of(message, Bytes{0});
    Translations& translations = transport_.paths().translations();
    const NicId nic = transport_.nic_of(target);
    const Instant now = transport_.counters().now();
    if (!message.rendezvous()) return translations.placing(target, nic, pages, message.head, now);
    if (pages.needed()) translations.writing(nic, pages, message.head, now);
    return {};
  }
  if (message.target_gpu == 0) return {};
  return transport_.paths().writing_lag(transport_.nic_of(target), message.target_gpu, message.head);
}

// A rendezvous only: what lies there of an eager message is told of with its end.
void Messages::ask_for_copy_of_head(const Message& message) {
  if (message.target_gpu == 0 || !message.lay_in_buffer() || message.head == Bytes{0}) return;
  host_.head_to_copy({.at = message.command.target,
                      .receive = inboxes_.receive(message.receive).command.token,
                      .offset = message.offset,
                      .size = message.head});
}

// From the segment into the receive's buffer.
void Messages::copy_out(std::uint32_t index) {
  const Message& message = messages_[index];
  Journey out = to_target(message, message.command.size, false);
  out.ends = {.to = message.target_gpu};
  transport_.copy(out, {Step::placement, index});
}

void Messages::add_unexpected(Inbox& target, std::uint32_t index) {
  Message& message = messages_[index];
  target.unexpected.add(label_of(message.command), index);
  ++totals_.unexpected_messages;
  message.state.move_to(MessageState::unexpected);
  if (message.header == HeaderAt::entry) ++target.unexpected_entries;
  if (message.in_software()) ++target.in_software;
  if (!message.by_memory) target.portal.waiting(message.in_software() ? target.in_software : target.unexpected_entries);
  inboxes_.note_list_entries(target);
}

// Reserves room in the receive's buffer. A multi-receive that has too little left takes no further messages.
void Messages::match(Inbox& at, std::uint32_t receive_index, std::uint32_t message_index) {
  Receive& receive = inboxes_.receive(receive_index);
  Message& message = messages_[message_index];
  DRYFLY_CHECK(message.receive == none && receive.used <= receive.command.capacity);
  message.receive = receive_index;
  message.target_gpu = receive.command.gpu;
  inboxes_.leave_list(message);
  message.offset = receive.used;
  receive.used = receive.used + std::min(message.command.size, receive.command.capacity - receive.used);
  ++receive.in_progress;
  receive.matched = true;
  if (receive.posted && full(receive.command, receive.used)) inboxes_.unpost(at, receive_index);
}

// An unexpected eager message lies in the overflow buffer; the NIC has reported its header only. When a receive for
// it is appended, the NIC searches the unexpected headers and raises the event that lets the payload be copied: the
// work that an expected message needs on arrival is done now, and takes the ingress latency again.
void Messages::match_unexpected(Inbox& at, std::uint32_t receive, std::uint32_t message_index) {
  match(at, receive, message_index);
  completion_.owe_notice(message_index);
  Message& message = messages_[message_index];
  if (!message.rendezvous()) {
    message.state.move_to(MessageState::placing);
    if (message.by_memory) return copy_out(message_index);
    // What software has matched lies in the host's memory already.
    return transport_.place({Step::placement, message_index}, message.matched_by_software());
  }
  ask_for_copy_of_head(message);
  if (!software_gets_.got_by_processor(message)) {
    outbox_.get(message_index);
  } else if (message.matched_by_software() && message.state == MessageState::unexpected) {
    software_gets_.software_get(message_index);
  } else {
    software_gets_.ask_for_get(message_index);
  }
}

void Messages::count_match(const Message& message, bool expected) {
  NicCounters& counters = transport_.counters_of(message.command.target);
  counters.add(Counter::lpe_net_match_requests);
  counters.add(message.in_software() ? Counter::lpe_net_match_request
               : expected            ? Counter::lpe_net_match_priority
                                     : Counter::lpe_net_match_overflow);
  if (message.rendezvous()) counters.add(Counter::lpe_rndzv_puts);
}

void Messages::soon(Parcel parcel, unsigned stage) const {
  if (is_control(parcel.step)) return;
  if (stage == 0) return messages_.prefetch(parcel.item);
  const Message& message = messages_[parcel.item];
  const EndpointId target = message.command.target;
  const Inbox* const found = inboxes_.find(target);
  if (found == nullptr) return;
  const Inbox& at = *found;
  if (stage == 1) {
    fetch_line(&at);
    fetch_line(&at.posted);
  } else {
    const SendCommand& command = message.command;
    at.posted.soon({command.envelope.tagged, command.source, command.envelope.tag});
  }
}

void Messages::go_on(NicId nic) {
  const std::vector<std::uint32_t> again = pauses_.end_of(nic);
  for (const std::uint32_t index : again) request_arrived(index, messages_[index].switch_hops);
}

void Messages::worked(EndpointId endpoint, const Work& work) {
  if (FlowControl::has(work.kind)) return flow_control_.worked(endpoint, work);
  Inbox& at = inboxes_.inbox(endpoint);
  if (!at.open) return;
  switch (work.kind) {
    case WorkKind::onload:
      return flow_control_.onload(endpoint);
    case WorkKind::drain:
      return at.portal.drained(work.count);
    case WorkKind::replenish:
      at.portal.replenish();
      return go_on(at.nic);
    case WorkKind::tell_match:
      return completion_.give_notice(work.item);
    case WorkKind::software_get:
    case WorkKind::tell_done:
      return software_gets_.worked(work);
    case WorkKind::fatal_entries:
    case WorkKind::fatal_events:
      return;  // the process has ended
    default:
      DRYFLY_UNREACHABLE("work of messages");
  }
}

}  // namespace dryfly::nic
