#include "core/nic/messages.hpp"

#include <algorithm>
#include <utility>

#include "core/nic/totals.hpp"

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
    : transport_(transport), host_(host), spec_(spec), totals_(totals) {}

Messages::Inbox& Messages::inbox(EndpointId endpoint) {
  DRYFLY_CHECK(endpoint.value < inboxes_.size() && inboxes_[endpoint.value] != nullptr);
  return *inboxes_[endpoint.value];
}

void Messages::open(EndpointId endpoint, NicId nic, const EndpointSettings& settings) {
  if (endpoint.value >= inboxes_.size()) inboxes_.resize(endpoint.value + std::size_t{1});
  auto& opened = inboxes_[endpoint.value];
  if (!opened) opened = std::make_unique<Inbox>();
  DRYFLY_CHECK(!opened->open);
  opened->open = true;
  ++opened->life;
  opened->nic = nic;
  opened->eager_max = settings.eager_max.value_or(spec_.eager_max);
  opened->rendezvous_head = settings.rendezvous_head.value_or(spec_.rendezvous_head);
  opened->posted_entries = opened->unexpected_entries = opened->in_software = 0;
  opened->software_class = settings.software_class;
  opened->notifies_done = settings.notifies_done;
  opened->gets_max = settings.software_gets;
  opened->control_slots = settings.control_slots;
  opened->gets_under_way = opened->control_used = 0;
  const auto [pool, is_new] = pools_.try_emplace({nic.value, settings.engine});
  if (is_new) pool->second.open(spec_.list_entries);
  opened->portal.open(settings, opened->eager_max, spec_.framing.header, pool->second, totals_.matching);
}

void Messages::restart() {
  messages_.restart();
  for (const auto& at : inboxes_) {
    if (at && at->open) at->portal.restart();
  }
}

// A receive that is still in progress is found to be from an earlier life when its payload is there.
void Messages::close(EndpointId endpoint) {
  Inbox& closed = inbox(endpoint);
  DRYFLY_CHECK(closed.open);
  closed.open = false;
  for (const std::uint32_t slot : closed.posted.slots()) unpost(closed, closed.posted.value(slot));
  std::vector<std::uint32_t> gone;
  for (std::uint32_t slot = closed.unexpected.oldest(); slot != no_match; slot = closed.unexpected.oldest()) {
    gone.push_back(closed.unexpected.value(slot));
    closed.unexpected.remove(slot);
  }
  for (const auto& [claim, message] : closed.claimed) gone.push_back(message);
  closed.claimed.clear();
  closed.waiting.clear();
  for (const std::uint32_t message : gone) drop(message);
  abandon_gets(endpoint);
  closed.portal.close();
  go_on(closed.nic);
  for (const std::uint32_t peer : std::exchange(closed.told_drops, {})) resume(peer);
}

void Messages::send(const SendCommand& command) {
  const std::uint32_t index = messages_.acquire();
  const Inbox& source = inbox(command.source);
  Message& message = messages_[index];
  message.command = command;
  message.life = ++lives_;
  message.number = ++sends_;
  message.on_node = transport_.on_node(command.source, command.target);
  const bool fits = command.size <= spec_.inline_max;
  message.protocol = fits && !command.by_dma                    ? Protocol::inlined
                     : fits || command.size <= source.eager_max ? Protocol::eager
                                                                : Protocol::rendezvous;
  message.head = message.protocol == Protocol::rendezvous ? source.rendezvous_head : command.size;
  message.foreign = !transport_.same_network(command.source, command.target);
  message.notifies_done = source.notifies_done && message.protocol == Protocol::rendezvous && !message.on_node;
  message.answer_class = command.traffic_class;
  if (!message.on_node && held_back(index)) return;
  launch(index);
}

void Messages::launch(std::uint32_t index) {
  Message& message = messages_[index];
  if (!message.on_node) {
    ++message.unacknowledged;
    message.under_way = true;
    transport_.counters_of(message.command.source)
        .add(message.protocol == Protocol::inlined ? Counter::cq_num_idc_cmds : Counter::cq_num_dma_cmds);
  }
  const Fetched fetched = message.protocol != Protocol::inlined     ? Fetched::payload
                          : message.command.size > spec_.pushed_max ? Fetched::command
                                                                    : Fetched::nothing;
  transport_.send_command(to_target(message, message.head, true), {Step::message, index}, fetched);
}

std::uint32_t Messages::new_receive(const ReceiveCommand& command, const Inbox& at) {
  const std::uint32_t index = receives_.acquire();
  receives_[index].command = command;
  receives_[index].life = at.life;
  return index;
}

void Messages::receive(const ReceiveCommand& command) {
  Inbox& at = inbox(command.at);
  DRYFLY_CHECK(at.open);
  const std::uint32_t index = new_receive(command, at);
  Receive& receive = receives_[index];
  transport_.counters_of(command.at).add(Counter::lpe_append_cmds);
  const Pattern pattern = pattern_of(command);
  while (!receive.matched || !full(command, receive.used)) {
    const std::uint32_t slot = at.unexpected.oldest_for(pattern);
    if (slot == no_match) {
      receive.slot = at.posted.post(pattern, index);
      receive.posted = true;
      append(at, index);
      note_list_entries(at);
      ask_processor(command.at);
      return;
    }
    const std::uint32_t message = at.unexpected.value(slot);
    at.unexpected.remove(slot);
    match_unexpected(at, index, message);
  }
}

void Messages::receive_claimed(const ReceiveCommand& command, Token claim) {
  Inbox& at = inbox(command.at);
  const auto claimed = at.claimed.find(claim);
  DRYFLY_CHECK(claimed != at.claimed.end());
  const std::uint32_t message = claimed->second;
  at.claimed.erase(claimed);
  match_unexpected(at, new_receive(command, at), message);
}

void Messages::peek(const PeekCommand& command) {
  Inbox& at = inbox(command.at);
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
    owe_notice(message);
    drop(message);
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
  Inbox& at = inbox(endpoint);
  const std::uint32_t slot =
      at.posted.find([&](std::uint32_t receive) { return receives_[receive].command.token == token; });
  if (slot == no_match) return;
  const std::uint32_t receive = at.posted.value(slot);
  const bool idle = receives_[receive].in_progress == 0;
  unpost(at, receive);
  if (idle) host_.cancelled(endpoint, token);
}

void Messages::unpost(Inbox& at, std::uint32_t index) {
  Receive& receive = receives_[index];
  at.posted.remove(receive.slot);
  receive.posted = receive.waits = false;
  if (std::exchange(receive.holds_entry, false)) {
    --at.posted_entries;
    at.portal.give_back();
  }
  if (receive.in_progress == 0) receives_.release(index);
}

bool Messages::settle(std::uint32_t index) {
  Receive& receive = receives_[index];
  --receive.in_progress;
  if (receive.posted || receive.in_progress > 0) return false;
  const bool released = receive.command.multi_receive;
  receives_.release(index);
  return released;
}

void Messages::arrived(Parcel parcel, std::uint32_t switch_hops) {
  switch (parcel.step) {
    case Step::message:
      return request_arrived(parcel.operation, switch_hops);
    case Step::get_request:
      return answer_get(parcel.operation);
    case Step::get_data:
      messages_[parcel.operation].switch_hops = switch_hops;
      return placed(parcel.operation);
    case Step::placement:
      return placed(parcel.operation);
    case Step::drop_notice: {
      const Peer& peer = peers_[parcel.operation];
      if (!inbox(peer.target).open) return resume(parcel.operation);
      if (!takes_control(peer.target, parcel.operation)) return;
      return ask_processor(peer.target, {.kind = WorkKind::count_drops, .item = parcel.operation, .life = peer.life});
    }
    case Step::resume: {
      const Peer& peer = peers_[parcel.operation];
      if (!takes_control(peer.source, parcel.operation)) return;
      const auto again = static_cast<std::uint32_t>(peer.refused.size() + peer.held.size());
      return ask_processor(peer.source,
                           {.kind = WorkKind::replay, .item = parcel.operation, .life = peer.life, .count = again});
    }
    case Step::no_room: {
      const Peer& peer = peers_[parcel.operation];
      const EndpointId sender = peer.resumed ? peer.target : peer.source;
      if (!inbox(sender).open) return tell_again(parcel.operation);
      return ask_processor(sender, {.kind = WorkKind::tell_again, .item = parcel.operation, .life = peer.life});
    }
    case Step::matched:
      --messages_[parcel.operation].unacknowledged;
      tell_source_once(parcel.operation);
      return retire_if_idle(parcel.operation);
    case Step::done: {
      if (messages_[parcel.operation].holds_credit) return;  // both hear of it with the acknowledgement
      const SendCommand& command = messages_[parcel.operation].command;
      const EndpointId source = command.source;
      const Token token = command.token;
      end(parcel.operation);
      return host_.sent(source, token);
    }
    default:
      DRYFLY_CHECK(!"a step of messages");
  }
}

Landing Messages::landing_of(Parcel parcel) const {
  if (parcel.step == Step::drop_notice) return {peers_[parcel.operation].target, Bytes{0}};
  if (parcel.step == Step::resume) return {peers_[parcel.operation].source, Bytes{0}};
  const Message& message = messages_[parcel.operation];
  return {message.command.target, parcel.step == Step::get_data ? message.command.size - message.head : message.head};
}

void Messages::acknowledged(Parcel parcel) {
  if (is_control(parcel.step)) return;
  Message& message = messages_[parcel.operation];
  --message.unacknowledged;
  if (parcel.step == Step::message) {
    message.answered = true;
    settle_request(parcel.operation);
    if (message.refused || message.paused) return;
    if (message.foreign) return message.arrived ? turned_away(parcel.operation) : void();
  }
  if (parcel.step == Step::done && message.holds_credit) return done_acknowledged(parcel.operation);
  const EndpointId source = message.command.source;
  const Token token = message.command.token;
  const bool is_sent = parcel.step == Step::message && complete_by_acknowledgement(message) && !message.source_told;
  if (is_sent) message.source_told = true;
  retire_if_idle(parcel.operation);
  if (is_sent) host_.sent(source, token);
}

void Messages::request_arrived(std::uint32_t index, std::uint32_t switch_hops) {
  Message& message = messages_[index];
  message.switch_hops = switch_hops;
  message.arrived = true;
  if (message.foreign) {
    settle_request(index);
    return message.on_node || message.answered ? turned_away(index) : void();
  }
  Inbox& target = inbox(message.command.target);
  if (waits_in_line(index)) return;
  if (!target.open) {
    settle_request(index);
    return drop(index);
  }
  const std::uint32_t slot = target.posted.oldest_for(label_of(message.command));
  if (!message.on_node) {
    const bool by_entry = slot != no_match && receives_[target.posted.value(slot)].holds_entry;
    const Portal::Admission admission = target.portal.admit(by_entry, slot != no_match, message.head);
    if (admission == Portal::Admission::refused) return refuse(index);
    if (admission == Portal::Admission::paused) return pause(index);
    settle_request(index);
    message.holds_entry = admission == Portal::Admission::unexpected;
    message.in_software = admission == Portal::Admission::software;
    count_match(message, by_entry);
    ask_processor(message.command.target);
  }
  const bool rendezvous = message.protocol == Protocol::rendezvous;
  message.unexpected = slot == no_match;
  if (message.answered && complete_by_acknowledgement(message)) tell_source_once(index);
  if (slot == no_match) {
    add_unexpected(target, index);
  } else {
    match(target, target.posted.value(slot), index);
    if (!rendezvous) return placed(index);
    if (!got_by_processor(message)) return get(index);
  }
  // Software looks at every request that comes to it, the CPU of a NIC that matches at those that have their receive.
  if (rendezvous && (message.in_software || (slot != no_match && got_by_processor(message)))) ask_for_get(index);
  if (slot == no_match) answer_waiting(target);
}

void Messages::add_unexpected(Inbox& target, std::uint32_t index) {
  Message& message = messages_[index];
  target.unexpected.add(label_of(message.command), index);
  ++totals_.unexpected_messages;
  message.listed = true;
  if (message.holds_entry) ++target.unexpected_entries;
  if (message.in_software) ++target.in_software;
  if (!message.on_node) target.portal.waiting(message.in_software ? target.in_software : target.unexpected_entries);
  note_list_entries(target);
  if (message.on_node && message.protocol != Protocol::rendezvous &&
      message.command.complete_when != Completeness::matched) {
    message.source_told = true;
    host_.sent(message.command.source, message.command.token);
  }
}

// Reserves room in the receive's buffer. A multi-receive that has too little left takes no further messages.
void Messages::match(Inbox& at, std::uint32_t receive_index, std::uint32_t message_index) {
  Receive& receive = receives_[receive_index];
  Message& message = messages_[message_index];
  message.receive = receive_index;
  leave_list(message);
  message.offset = receive.used;
  receive.used = receive.used + std::min(message.command.size, receive.command.capacity - receive.used);
  ++receive.in_progress;
  receive.matched = true;
  if (receive.posted && full(receive.command, receive.used)) unpost(at, receive_index);
}

// An unexpected eager message lies in the overflow buffer; the NIC has reported its header only. When a receive for
// it is appended, the NIC searches the unexpected headers and raises the event that lets the payload be copied: the
// work that an expected message needs on arrival is done now, and takes the ingress latency again.
void Messages::match_unexpected(Inbox& at, std::uint32_t receive, std::uint32_t message_index) {
  match(at, receive, message_index);
  owe_notice(message_index);
  const Message& message = messages_[message_index];
  const bool by_software = message.in_software || message.onloaded;
  if (message.protocol != Protocol::rendezvous) {
    // What software has matched lies in the host's memory already.
    transport_.place({Step::placement, message_index}, message.on_node || by_software);
  } else if (!got_by_processor(message)) {
    get(message_index);
  } else if (!by_software) {
    ask_for_get(message_index);
  } else if (!message.awaits_processor) {
    software_get(message_index);
  }
}

void Messages::count_match(const Message& message, bool expected) {
  NicCounters& counters = transport_.counters_of(message.command.target);
  counters.add(Counter::lpe_net_match_requests);
  counters.add(message.in_software ? Counter::lpe_net_match_request
               : expected          ? Counter::lpe_net_match_priority
                                   : Counter::lpe_net_match_overflow);
  if (message.protocol == Protocol::rendezvous) counters.add(Counter::lpe_rndzv_puts);
}

// On-node there is no NIC to ask: the local link copies the rest.
void Messages::get(std::uint32_t index) {
  Message& message = messages_[index];
  if (message.on_node) return answer_get(index);
  ++message.unacknowledged;
  transport_.counters_of(message.command.target).add(Counter::lpe_rndzv_puts_offloaded);
  transport_.send(to_source(message), {Step::get_request, index});
}

void Messages::answer_get(std::uint32_t index) {
  Message& message = messages_[index];
  if (!message.on_node) ++message.unacknowledged;
  Journey answer = to_target(message, message.command.size - message.head, false);
  answer.traffic_class = message.answer_class;
  transport_.fetch_and_send(answer, {Step::get_data, index});
}

// Whether the end-point that posted its receive is still there.
bool Messages::hears_of(const Message& message) {
  const Inbox& target = inbox(message.command.target);
  return target.open && target.life == receives_[message.receive].life;
}

void Messages::placed(std::uint32_t index) {
  const Message& message = messages_[index];
  if (!hears_of(message)) return drop(index);
  if (message.notifies_done && message.holds_credit) return tell_done(index);
  deliver(index);
}

void Messages::deliver(std::uint32_t index) {
  Message& message = messages_[index];
  return_credit(message);
  Received received = report_of(message);
  received.buffer_released = settle(message.receive);
  count(totals_, message.protocol, message.on_node, message.switch_hops, message.command.size);
  const bool tell_source = finish(index);
  host_.received(received);
  if (tell_source) host_.sent(received.source, received.send);
}

Received Messages::report_of(const Message& message) const {
  return {.at = message.command.target,
          .source = message.command.source,
          .receive = receives_[message.receive].command.token,
          .send = message.command.token,
          .envelope = message.command.envelope,
          .size = message.command.size,
          .offset = message.offset,
          .protocol = message.protocol,
          .on_node = message.on_node,
          .switch_hops = message.switch_hops,
          .matched_in_software = message.in_software && message.protocol != Protocol::rendezvous};
}

void Messages::drop(std::uint32_t index) {
  const Message& message = messages_[index];
  return_credit(messages_[index]);
  const EndpointId source = message.command.source;
  const Token token = message.command.token;
  if (message.receive != none) settle(message.receive);
  leave_list(messages_[index]);
  const bool tell_source = finish(index);
  host_.dropped(token);
  if (tell_source) host_.sent(source, token);
}

bool Messages::finish(std::uint32_t index) {
  Message& message = messages_[index];
  if (message.protocol == Protocol::rendezvous && !message.on_node && !message.told_done) {
    ++message.unacknowledged;
    transport_.send(to_source(message), {Step::done, index});
    return false;
  }
  const bool tell_source = message.on_node && !message.source_told;
  end(index);
  return tell_source;
}

void Messages::end(std::uint32_t index) {
  messages_[index].over = true;
  messages_[index].awaits_processor = false;
  retire_if_idle(index);
}

void Messages::retire_if_idle(std::uint32_t index) {
  if (messages_[index].over && messages_[index].unacknowledged == 0) messages_.release(index);
}

Journey Messages::to_target(const Message& message, Bytes size, bool ordered) const {
  return {message.command.source, message.command.target, size, message.command.traffic_class, ordered};
}

Journey Messages::to_source(const Message& message) const {
  return {message.command.target, message.command.source, Bytes{0}, message.answer_class, false};
}

void Messages::note_list_entries(Inbox& at) {
  at.portal.posted(at.posted_entries);
  const std::uint64_t entries = at.posted.size() + at.unexpected.size() + at.claimed.size();
  totals_.list_entries_max = std::max(totals_.list_entries_max, entries);
}

}  // namespace dryfly::nic
