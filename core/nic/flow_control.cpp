#include "core/nic/flow_control.hpp"

#include <algorithm>
#include <utility>

namespace dryfly::nic {

void FlowControl::open(EndpointId endpoint, const EndpointSettings& settings) {
  if (endpoint.value >= control_.size()) control_.resize(endpoint.value + std::size_t{1});
  Control& opened = control_[endpoint.value];
  DRYFLY_CHECK(opened.told_drops.empty());
  opened.slots = settings.control_slots;
  opened.used = 0;
}

void FlowControl::close(EndpointId endpoint) { resume_all(endpoint); }

void FlowControl::refuse(std::uint32_t index) {
  Message& message = messages_[index];
  Inbox& target = inboxes_.inbox(message.command.target);
  message.state.move_to(MessageState::refused);
  target.portal.dropped();
  ++totals_.matching.messages_refused;
  inboxes_.ask_processor(message.command.target);
  settle_request(index);
}

// The CPU takes every unexpected header into the host's memory and frees its entry; then it appends the receives for
// which there was none.
void FlowControl::onload(EndpointId endpoint) {
  Inbox& at = inboxes_.inbox(endpoint);
  std::uint32_t headers = 0;
  const auto take = [&](std::uint32_t index) {
    Message& message = messages_[index];
    if (message.header != HeaderAt::entry) return;
    message.header = HeaderAt::host;
    at.portal.give_back();
    ++headers;
  };
  for (std::uint32_t slot = at.unexpected.oldest(); slot != no_match; slot = at.unexpected.next(slot)) {
    take(at.unexpected.value(slot));
  }
  for (const auto& [claim, message] : at.claimed) take(message);
  at.unexpected_entries = 0;
  if (!at.portal.onloaded(headers)) return inboxes_.ask_processor(endpoint, {.kind = WorkKind::fatal_entries});
  for (const std::uint32_t slot : at.posted.slots()) {
    Receive& receive = inboxes_.receive(at.posted.value(slot));
    if (!receive.waits) continue;
    if (!at.portal.append_again()) {
      at.portal.append_failed_again();
      break;
    }
    receive.waits = false;
    receive.holds_entry = true;
    ++at.posted_entries;
  }
  inboxes_.note_list_entries(at);
  enable(endpoint);
}

void FlowControl::enable(EndpointId endpoint) {
  if (inboxes_.inbox(endpoint).portal.enable()) resume_all(endpoint);
  inboxes_.ask_processor(endpoint);
}

void FlowControl::resume_all(EndpointId endpoint) {
  for (const std::uint32_t peer : std::exchange(control_[endpoint.value].told_drops, {})) resume(peer);
}

void FlowControl::resume(std::uint32_t index) {
  peers_[index].state.move_to(PeerState::resumed);
  say_resume(index);
}

void FlowControl::say_resume(std::uint32_t index) {
  const Peer& peer = peers_[index];
  transport_.send_command({.from = peer.target, .to = peer.source}, {Step::resume, index}, Fetched::nothing);
}

// What a provider is told goes through an event queue of its own; when that is full the NIC answers so
// (C_RC_ENTRY_NOT_FOUND), and whoever has sent it waits and says it again.
bool FlowControl::takes_control(EndpointId endpoint, std::uint32_t index) {
  Control& control = control_[endpoint.value];
  const Peer& peer = peers_[index];
  if (control.used < control.slots) {
    ++control.used;
    return true;
  }
  ++totals_.matching.notices_repeated;
  const EndpointId sender = endpoint == peer.target ? peer.source : peer.target;
  transport_.send({.from = endpoint, .to = sender}, {Step::no_room, index});
  return false;
}

void FlowControl::tell_again(std::uint32_t index) {
  return peers_[index].state == PeerState::resumed ? say_resume(index) : say_notice(index);
}

std::uint32_t FlowControl::new_peer(const Message& message) {
  const std::uint32_t index = peers_.acquire();
  Peer& peer = peers_[index];
  peer.source = message.command.source;
  peer.target = message.command.target;
  peer.life = messages_.new_life();
  for (std::uint32_t other = 0; other < messages_.size(); ++other) {
    const Message& candidate = messages_[other];
    const bool same = candidate.command.source == peer.source && candidate.command.target == peer.target;
    if (same && candidate.under_way()) ++peer.under_way;
  }
  return index;
}

void FlowControl::settle_request(std::uint32_t index) {
  const Message& message = messages_[index];
  if (!message.answered() || !message.decided()) return;
  const bool refused = message.state == MessageState::refused;
  if (!refused && peer_of_.empty()) return;
  const std::pair key{message.command.source.value, message.command.target.value};
  const auto found = peer_of_.find(key);
  if (found == peer_of_.end()) {
    if (!refused) return;
    const std::uint32_t peer = peer_of_[key] = new_peer(message);
    peers_[peer].refused.push_back(index);
    return ask_to_withhold(peer);
  }
  Peer& peer = peers_[found->second];
  DRYFLY_CHECK(peer.under_way > 0);
  --peer.under_way;
  if (refused) peer.refused.push_back(index);
  if (peer.state == PeerState::withholding && peer.under_way == 0) {
    peer.state.move_to(PeerState::settled);
    ask_to_withhold(found->second);
  }
}

void FlowControl::ask_to_withhold(std::uint32_t index) {
  const Peer& peer = peers_[index];
  inboxes_.ask_processor(peer.source, {.kind = WorkKind::hold, .item = index, .life = peer.life, .count = 1});
}

void FlowControl::withhold(std::uint32_t index) {
  Peer& peer = peers_[index];
  if (peer.under_way > 0) return peer.state.move_to(PeerState::withholding);
  peer.state.move_to(PeerState::noticed);
  say_notice(index);
}

void FlowControl::say_notice(std::uint32_t index) {
  const Peer& peer = peers_[index];
  transport_.send_command({.from = peer.source, .to = peer.target}, {Step::drop_notice, index}, Fetched::nothing);
}

bool FlowControl::withholds(std::uint32_t index) {
  if (peer_of_.empty()) return false;
  const SendCommand& command = messages_[index].command;
  const auto found = peer_of_.find({command.source.value, command.target.value});
  if (found == peer_of_.end()) return false;
  Peer& peer = peers_[found->second];
  if (peer.state == PeerState::dropped) {
    ++peer.under_way;
    return false;
  }
  peer.withheld.push_back(index);
  return true;
}

void FlowControl::replay(std::uint32_t index) {
  std::vector<std::uint32_t> refused = std::move(peers_[index].refused);
  const std::vector<std::uint32_t> withheld = std::move(peers_[index].withheld);
  forget(index);
  std::sort(refused.begin(), refused.end(),
            [&](std::uint32_t a, std::uint32_t b) { return messages_[a].number < messages_[b].number; });
  // What was refused was sent before anything was withheld.
  DRYFLY_CHECK(refused.empty() || withheld.empty() ||
               messages_[refused.back()].number < messages_[withheld.front()].number);
  totals_.matching.messages_replayed += refused.size();
  for (const std::uint32_t message : refused) {
    messages_[message].state.move_to(MessageState::coming);
    outbox_.launch(message);
  }
  for (const std::uint32_t message : withheld) outbox_.launch(message);
}

void FlowControl::forget(std::uint32_t index) {
  Peer& peer = peers_[index];
  peer_of_.erase({peer.source.value, peer.target.value});
  peer.state.move_to(PeerState::over);
  peer.life = 0;
  peers_.release(index);
}

void FlowControl::peer_lost(std::uint32_t index) {
  std::vector<std::uint32_t> waiting = std::move(peers_[index].refused);
  waiting.insert(waiting.end(), peers_[index].withheld.begin(), peers_[index].withheld.end());
  forget(index);
  for (const std::uint32_t message : waiting) {
    const SendCommand command = messages_[message].command;
    const bool is_news = messages_[message].note_told_once();
    messages_.end(message);
    host_.dropped(command.source, command.token);
    if (is_news) host_.send_failed(command.source, command.token, error_unreachable);
  }
}

void FlowControl::arrived(Parcel parcel) {
  const std::uint32_t index = parcel.item;
  const Peer& peer = peers_[index];
  if (parcel.step == Step::drop_notice) {
    if (!inboxes_.inbox(peer.target).open) return resume(index);
    if (!takes_control(peer.target, index)) return;
    return inboxes_.ask_processor(peer.target, {.kind = WorkKind::count_drops, .item = index, .life = peer.life});
  }
  if (parcel.step == Step::resume) {
    if (!takes_control(peer.source, index)) return;
    const auto again = static_cast<std::uint32_t>(peer.refused.size() + peer.withheld.size());
    return inboxes_.ask_processor(peer.source,
                                  {.kind = WorkKind::replay, .item = index, .life = peer.life, .count = again});
  }
  DRYFLY_CHECK(parcel.step == Step::no_room);
  const EndpointId sender = peer.state == PeerState::resumed ? peer.target : peer.source;
  if (!inboxes_.inbox(sender).open) return tell_again(index);
  inboxes_.ask_processor(sender, {.kind = WorkKind::tell_again, .item = index, .life = peer.life});
}

void FlowControl::worked(EndpointId endpoint, const Work& work) {
  Control& control = control_[endpoint.value];
  const bool by_control = work.kind == WorkKind::count_drops || work.kind == WorkKind::replay;
  if (by_control && control.used > 0) --control.used;
  if (peers_[work.item].life != work.life) return;
  switch (work.kind) {
    case WorkKind::hold:
      return withhold(work.item);
    case WorkKind::count_drops:
      inboxes_.inbox(endpoint).portal.drops_told(static_cast<std::uint32_t>(peers_[work.item].refused.size()));
      control.told_drops.push_back(work.item);
      return enable(endpoint);
    case WorkKind::replay:
      return replay(work.item);
    case WorkKind::tell_again:
      return tell_again(work.item);
    default:
      DRYFLY_UNREACHABLE("work of flow control");
  }
}

Landing FlowControl::landing_of(Parcel parcel) const {
  const Peer& peer = peers_[parcel.item];
  return {parcel.step == Step::drop_notice ? peer.target : peer.source, Bytes{0}};
}

}  // namespace dryfly::nic
