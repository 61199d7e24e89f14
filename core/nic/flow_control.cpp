// Flow control between the two ends, as section C4 of the fact sheet has it. A disabled portal drops what comes; each
// answer tells its source so. The source's CPU keeps back what it would send next, and when nothing of it is under way
// to that target any more it tells how much was dropped. The target's CPU has meanwhile onloaded; when the drops of all
// sources add up to what the portal has dropped it enables the portal and tells them, and they send again in order.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/nic/messages.hpp"

namespace dryfly::nic {

void Messages::worked(EndpointId endpoint, const Work& work) {
  Inbox& at = inbox(endpoint);
  const bool by_control = work.kind == WorkKind::count_drops || work.kind == WorkKind::replay;
  if (by_control && at.control_used > 0) --at.control_used;
  const bool of_peer = by_control || work.kind == WorkKind::hold || work.kind == WorkKind::tell_again;
  if (of_peer && peers_[work.item].life != work.life) return;
  if (!of_peer && !at.open) return;
  switch (work.kind) {
    case WorkKind::onload:
      return onload(endpoint);
    case WorkKind::drain:
      return at.portal.drained(work.count);
    case WorkKind::replenish:
      at.portal.replenish();
      return go_on(at.nic);
    case WorkKind::hold:
      return hold(work.item);
    case WorkKind::count_drops:
      at.portal.drops_told(static_cast<std::uint32_t>(peers_[work.item].refused.size()));
      at.told_drops.push_back(work.item);
      return enable(endpoint);
    case WorkKind::replay:
      return replay(work.item);
    case WorkKind::software_get: {
      Message& message = messages_[work.item];
      if (message.life != work.life || message.over) return;
      message.awaits_processor = false;
      if (message.receive != none) software_get(work.item);
      return;
    }
    case WorkKind::tell_match:
      ++messages_[work.item].unacknowledged;
      messages_[work.item].answer_class = at.software_class;
      return transport_.send_command(to_source(messages_[work.item]), {Step::matched, work.item}, Fetched::nothing);
    case WorkKind::tell_done: {
      Message& message = messages_[work.item];
      if (message.life != work.life || message.over) return;
      message.awaits_processor = false;
      ++message.unacknowledged;
      return transport_.send_command(to_source(message), {Step::done, work.item}, Fetched::nothing);
    }
    case WorkKind::tell_again:
      return tell_again(work.item);
    case WorkKind::fatal_entries:
    case WorkKind::fatal_events:
    case WorkKind::collective:  // goes elsewhere
      return;                   // the process has ended
  }
}

// --- list entries, and what software does ---

// What only a peer on the node can send to is the shared memory's, and is not on the NIC's list.
void Messages::append(Inbox& at, std::uint32_t index) {
  Receive& receive = receives_[index];
  const ReceiveCommand& command = receive.command;
  if (!command.any_source && transport_.on_node(command.at, command.source)) return;
  const Portal::Append appended = at.portal.append();
  receive.waits = appended == Portal::Append::waits;
  receive.holds_entry = appended == Portal::Append::entry;
  if (receive.holds_entry) ++at.posted_entries;
}

// No longer waiting, in whatever list: the entry of an unexpected header is free.
void Messages::leave_list(Message& message) {
  if (!std::exchange(message.listed, false)) return;
  Inbox& target = inbox(message.command.target);
  if (message.in_software) --target.in_software;
  if (std::exchange(message.holds_entry, false)) {
    --target.unexpected_entries;
    target.portal.give_back();
    target.portal.event();  // the header's second event, with the receive that has taken it
  }
}

void Messages::ask_processor(EndpointId endpoint) {
  Inbox& at = inbox(endpoint);
  while (std::optional<Work> work = at.portal.next_work()) {
    if (work->kind == WorkKind::onload) work->count = at.unexpected_entries;
    host_.needs_processor(endpoint, *work);
  }
}

// --- lossless (FI_CXI_MSG_LOSSLESS) ---

// The NIC takes no further message of the class until its provider has posted a buffer. Here they wait in the NIC, not
// in the network before it, and memory operations of the class go on.
void Messages::pause(std::uint32_t index) {
  Message& message = messages_[index];
  message.paused = true;
  message.arrived = false;
  ++totals_.matching.messages_paused;
  paused_[{inbox(message.command.target).nic.value, message.command.traffic_class}].push_back(index);
  ask_processor(message.command.target);
}

bool Messages::waits_in_line(std::uint32_t index) {
  const Message& message = messages_[index];
  if (paused_.empty() || message.on_node) return false;
  const auto line = paused_.find({inbox(message.command.target).nic.value, message.command.traffic_class});
  if (line == paused_.end()) return false;
  pause(index);
  return true;
}

// The line of each class again from its head, which may have to wait for more.
void Messages::go_on(NicId nic) {
  constexpr TrafficClass first{};
  std::vector<std::uint32_t> again;
  for (auto line = paused_.lower_bound({nic.value, first}); line != paused_.end() && line->first.first == nic.value;) {
    again.insert(again.end(), line->second.begin(), line->second.end());
    line = paused_.erase(line);
  }
  for (const std::uint32_t index : again) {
    messages_[index].paused = false;
    request_arrived(index, messages_[index].switch_hops);
  }
}

// --- at the target ------------------------------------------------------------------------------------------------

void Messages::refuse(std::uint32_t index) {
  Message& message = messages_[index];
  Inbox& target = inbox(message.command.target);
  message.refused = true;
  target.portal.dropped();
  ++totals_.matching.messages_refused;
  ask_processor(message.command.target);
  settle_request(index);
}

// The CPU takes every unexpected header into the host's memory and frees its entry; then it appends the receives for
// which there was none.
void Messages::onload(EndpointId endpoint) {
  Inbox& at = inbox(endpoint);
  std::uint32_t headers = 0;
  const auto take = [&](std::uint32_t index) {
    Message& message = messages_[index];
    if (!std::exchange(message.holds_entry, false)) return;
    message.onloaded = true;
    at.portal.give_back();
    ++headers;
  };
  for (std::uint32_t slot = at.unexpected.oldest(); slot != no_match; slot = at.unexpected.next(slot)) {
    take(at.unexpected.value(slot));
  }
  for (const auto& [claim, message] : at.claimed) take(message);
  at.unexpected_entries = 0;
  if (!at.portal.onloaded(headers)) return ask_processor(endpoint, {.kind = WorkKind::fatal_entries});
  for (const std::uint32_t slot : at.posted.slots()) {
    Receive& receive = receives_[at.posted.value(slot)];
    if (!receive.waits) continue;
    if (!at.portal.append_again()) {
      at.portal.append_failed_again();
      break;
    }
    receive.waits = false;
    receive.holds_entry = true;
    ++at.posted_entries;
  }
  note_list_entries(at);
  enable(endpoint);
}

void Messages::enable(EndpointId endpoint) {
  Inbox& at = inbox(endpoint);
  if (at.portal.enable()) {
    for (const std::uint32_t peer : std::exchange(at.told_drops, {})) resume(peer);
  }
  ask_processor(endpoint);
}

void Messages::resume(std::uint32_t index) {
  Peer& peer = peers_[index];
  peer.resumed = true;
  transport_.send_command({.from = peer.target, .to = peer.source}, {Step::resume, index}, Fetched::nothing);
}

// What a provider is told goes through an event queue of its own; when that is full the NIC answers so
// (C_RC_ENTRY_NOT_FOUND), and whoever has sent it waits and says it again.
bool Messages::takes_control(EndpointId endpoint, std::uint32_t index) {
  Inbox& at = inbox(endpoint);
  const Peer& peer = peers_[index];
  if (at.control_used < at.control_slots) {
    ++at.control_used;
    return true;
  }
  ++totals_.matching.notices_repeated;
  const EndpointId sender = endpoint == peer.target ? peer.source : peer.target;
  transport_.send({.from = endpoint, .to = sender}, {Step::no_room, index});
  return false;
}

void Messages::tell_again(std::uint32_t index) { return peers_[index].resumed ? resume(index) : notice(index); }

// --- at the source ------------------------------------------------------------------------------------------------

std::uint32_t Messages::new_peer(const Message& message) {
  const std::uint32_t index = peers_.acquire();
  Peer& peer = peers_[index];
  peer.source = message.command.source;
  peer.target = message.command.target;
  peer.life = ++lives_;
  for (std::uint32_t other = 0; other < messages_.size(); ++other) {
    const Message& candidate = messages_[other];
    const bool same = candidate.command.source == peer.source && candidate.command.target == peer.target;
    if (candidate.under_way && same) ++peer.under_way;
  }
  return index;
}

// Told of each message whose fate is decided at the target and known at its source.
void Messages::settle_request(std::uint32_t index) {
  Message& message = messages_[index];
  if (!message.under_way || !message.arrived || !message.answered) return;
  message.under_way = false;
  if (!message.refused && peer_of_.empty()) return;
  const std::pair key{message.command.source.value, message.command.target.value};
  const auto found = peer_of_.find(key);
  if (!message.refused && found == peer_of_.end()) return;
  if (found == peer_of_.end()) {
    peer_of_[key] = new_peer(message);
  } else {
    --peers_[found->second].under_way;
  }
  const std::uint32_t peer = peer_of_[key];
  if (message.refused) peers_[peer].refused.push_back(index);
  if (!peers_[peer].holding || peers_[peer].under_way == 0) ask_to_hold(peer);
}

void Messages::ask_to_hold(std::uint32_t index) {
  Peer& peer = peers_[index];
  if (std::exchange(peer.asked, true)) return;
  ask_processor(peer.source, {.kind = WorkKind::hold, .item = index, .life = peer.life, .count = 1});
}

void Messages::hold(std::uint32_t index) {
  Peer& peer = peers_[index];
  peer.asked = false;
  peer.holding = true;
  if (peer.under_way > 0 || std::exchange(peer.noticed, true)) return;
  notice(index);
}

void Messages::notice(std::uint32_t index) {
  const Peer& peer = peers_[index];
  transport_.send_command({.from = peer.source, .to = peer.target}, {Step::drop_notice, index}, Fetched::nothing);
}

bool Messages::held_back(std::uint32_t index) {
  if (peer_of_.empty()) return false;
  const SendCommand& command = messages_[index].command;
  const auto found = peer_of_.find({command.source.value, command.target.value});
  if (found == peer_of_.end()) return false;
  Peer& peer = peers_[found->second];
  if (peer.holding) {
    peer.held.push_back(index);
  } else {
    ++peer.under_way;
  }
  return peer.holding;
}

void Messages::replay(std::uint32_t index) {
  std::vector<std::uint32_t> refused = std::move(peers_[index].refused);
  const std::vector<std::uint32_t> held = std::move(peers_[index].held);
  forget(index);
  std::sort(refused.begin(), refused.end(),
            [&](std::uint32_t a, std::uint32_t b) { return messages_[a].number < messages_[b].number; });
  totals_.matching.messages_replayed += refused.size();
  for (const std::uint32_t message : refused) {
    messages_[message].refused = messages_[message].arrived = messages_[message].answered = false;
    launch(message);
  }
  for (const std::uint32_t message : held) launch(message);
}

void Messages::forget(std::uint32_t index) {
  Peer& peer = peers_[index];
  peer_of_.erase({peer.source.value, peer.target.value});
  peer.life = 0;
  peers_.release(index);
}

// The network has given up what the two had to tell each other: the messages that wait for it fail.
void Messages::peer_lost(std::uint32_t index) {
  std::vector<std::uint32_t> waiting = std::move(peers_[index].refused);
  waiting.insert(waiting.end(), peers_[index].held.begin(), peers_[index].held.end());
  forget(index);
  for (const std::uint32_t message : waiting) {
    const SendCommand command = messages_[message].command;
    end(message);
    host_.dropped(command.token);
    host_.send_failed(command.source, command.token, error_unreachable);
  }
}

}  // namespace dryfly::nic
