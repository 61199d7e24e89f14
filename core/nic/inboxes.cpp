#include "core/nic/inboxes.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace dryfly::nic {

void Inboxes::open(EndpointId endpoint, NicId nic, const EndpointSettings& settings) {
  if (endpoint.value >= inboxes_.size()) inboxes_.resize(endpoint.value + std::size_t{1});
  auto& opened = inboxes_[endpoint.value];
  if (!opened) opened = std::make_unique<Inbox>();
  DRYFLY_CHECK(!opened->open);
  opened->open = true;
  ++opened->life;
  opened->nic = nic;
  opened->posted_entries = opened->unexpected_entries = opened->in_software = 0;
  // One in memory takes nothing of the NIC's engines.
  const auto engine = settings.in_memory ? std::pair{none, endpoint.value} : std::pair{nic.value, settings.engine};
  const auto [pool, is_new] = pools_.try_emplace(engine);
  if (is_new) pool->second.open(spec_.list_entries);
  opened->portal.open(settings, settings.eager_max.value_or(spec_.eager_max), spec_.framing.header, pool->second,
                      totals_.matching);
}

void Inboxes::restart() {
  for (const auto& at : inboxes_) {
    if (at && at->open) at->portal.restart();
  }
}

std::uint32_t Inboxes::new_receive(const ReceiveCommand& command, const Inbox& at) {
  const std::uint32_t index = receives_.acquire();
  receives_[index].command = command;
  receives_[index].life = at.life;
  return index;
}

void Inboxes::unpost(Inbox& at, std::uint32_t index) {
  Receive& receive = receives_[index];
  DRYFLY_CHECK(receive.posted);
  at.posted.remove(receive.slot);
  receive.posted = receive.waits = false;
  if (std::exchange(receive.holds_entry, false)) {
    DRYFLY_CHECK(at.posted_entries > 0);
    --at.posted_entries;
    at.portal.give_back();
  }
  if (receive.in_progress == 0) receives_.release(index);
}

bool Inboxes::settle(std::uint32_t index) {
  Receive& receive = receives_[index];
  DRYFLY_CHECK(receive.in_progress > 0);
  --receive.in_progress;
  if (receive.posted || receive.in_progress > 0) return false;
  const bool released = receive.command.multi_receive;
  receives_.release(index);
  return released;
}

bool Inboxes::hears_of(const Message& message) {
  DRYFLY_CHECK(message.receive != none);
  const Inbox& target = inbox(message.command.target);
  return target.open && target.life == receives_[message.receive].life;
}

void Inboxes::note_list_entries(Inbox& at) {
  at.portal.posted(at.posted_entries);
  const std::uint64_t entries = at.posted.size() + at.unexpected.size() + at.claimed.size();
  totals_.list_entries_max = std::max(totals_.list_entries_max, entries);
}

// What only a peer that shares memory can send to is not on the NIC's list.
void Inboxes::append(Inbox& at, std::uint32_t index) {
  Receive& receive = receives_[index];
  const ReceiveCommand& command = receive.command;
  if (!command.any_source && transport_.by_memory(command.at, command.source)) return;
  const Portal::Append appended = at.portal.append();
  receive.waits = appended == Portal::Append::waits;
  receive.holds_entry = appended == Portal::Append::entry;
  if (receive.holds_entry) ++at.posted_entries;
}

void Inboxes::leave_list(Message& message) {
  if (!message.is_unexpected()) return;
  Inbox& target = inbox(message.command.target);
  if (message.in_software()) {
    DRYFLY_CHECK(target.in_software > 0);
    --target.in_software;
  }
  if (message.header == HeaderAt::entry) {
    message.header = HeaderAt::nowhere;
    DRYFLY_CHECK(target.unexpected_entries > 0);
    --target.unexpected_entries;
    target.portal.give_back();
    target.portal.event();  // the header's second event, with the receive that has taken it
  }
}

void Inboxes::ask_processor(EndpointId endpoint) {
  Inbox& at = inbox(endpoint);
  while (std::optional<Work> work = at.portal.next_work()) {
    if (work->kind == WorkKind::onload) work->count = at.unexpected_entries;
    host_.needs_processor(endpoint, *work);
  }
}

}  // namespace dryfly::nic
