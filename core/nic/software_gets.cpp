#include "core/nic/software_gets.hpp"

#include <utility>

namespace dryfly::nic {

bool SoftwareGets::got_by_processor(const Message& message) const {
  return !message.on_node && (message.in_software || message.onloaded || !spec_.gets_by_nic);
}

// Software that matches has that to do as well.
void SoftwareGets::ask_for_get(std::uint32_t index) {
  Message& message = messages_[index];
  message.awaits_processor = true;
  inboxes_.ask_processor(message.command.target, {.kind = WorkKind::software_get,
                                                  .item = index,
                                                  .life = message.life,
                                                  .count = message.in_software && !message.holds_credit ? 1U : 0U});
}

void SoftwareGets::software_get(std::uint32_t index) {
  Message& message = messages_[index];
  Inbox& at = inboxes_.inbox(message.command.target);
  if (!message.holds_credit) {
    if (at.gets_under_way >= at.gets_max) return at.gets_waiting.push_back(index);
    ++at.gets_under_way;
    message.holds_credit = true;
  }
  message.answer_class = at.software_class;
  ++message.unacknowledged;
  transport_.counters_of(message.command.target).add(Counter::cq_num_dma_cmds);
  transport_.send_command(to_source(message), {Step::get_request, index}, Fetched::nothing);
}

// The next that waits for a credit has it from now on; the CPU issues its Get when it gets to it.
void SoftwareGets::return_credit(Message& message) {
  if (!std::exchange(message.holds_credit, false) || !inboxes_.hears_of(message)) return;
  Inbox& at = inboxes_.inbox(message.command.target);
  if (at.gets_waiting.empty()) {
    --at.gets_under_way;
    return;
  }
  const std::uint32_t next = at.gets_waiting.front();
  at.gets_waiting.pop_front();
  messages_[next].holds_credit = true;
  ask_for_get(next);
}

void SoftwareGets::tell_done(std::uint32_t index) {
  Message& message = messages_[index];
  message.awaits_processor = true;
  inboxes_.ask_processor(message.command.target, {.kind = WorkKind::tell_done, .item = index, .life = message.life});
}

void SoftwareGets::worked(const Work& work) {
  Message& message = messages_[work.item];
  if (message.life != work.life || message.over) return;
  message.awaits_processor = false;
  if (work.kind == WorkKind::software_get) {
    if (message.receive != none) software_get(work.item);
    return;
  }
  DRYFLY_CHECK(work.kind == WorkKind::tell_done);
  ++message.unacknowledged;
  transport_.send_command(to_source(message), {Step::done, work.item}, Fetched::nothing);
}

std::vector<std::uint32_t> SoftwareGets::abandoned_at(EndpointId closed) {
  const std::deque<std::uint32_t> waiting = std::exchange(inboxes_.inbox(closed).gets_waiting, {});
  std::vector<std::uint32_t> abandoned(waiting.begin(), waiting.end());
  for (std::uint32_t index = 0; index < messages_.size(); ++index) {
    const Message& message = messages_[index];
    if (message.awaits_processor && message.command.target == closed && message.receive != none) {
      abandoned.push_back(index);
    }
  }
  return abandoned;
}

}  // namespace dryfly::nic
