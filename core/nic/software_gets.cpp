// Gets of rendezvous payloads that the target's CPU issues: where software matches, or where the NIC is set not to
// issue them itself. They travel in a class of their own, and so many may be under way (cxip_recv_rdzv_cb,
// issue_rdzv_get). Of a source that asks for restricted Gets (alt_read) the CPU says at the end that it is done, and
// takes its own receive for complete when that is acknowledged (cxip_rdzv_done_notify); the source hears of it at that
// instant too, one flight late, for until then its buffer is being read here.
#include <utility>

#include "core/nic/messages.hpp"

namespace dryfly::nic {

bool Messages::got_by_processor(const Message& message) const {
  return !message.on_node && (message.in_software || message.onloaded || !spec_.gets_by_nic);
}

// Software that matches has that to do as well.
void Messages::ask_for_get(std::uint32_t index) {
  Message& message = messages_[index];
  message.awaits_processor = true;
  ask_processor(message.command.target, {.kind = WorkKind::software_get,
                                         .item = index,
                                         .life = message.life,
                                         .count = message.in_software && !message.holds_credit ? 1U : 0U});
}

void Messages::software_get(std::uint32_t index) {
  Message& message = messages_[index];
  Inbox& at = inbox(message.command.target);
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
void Messages::return_credit(Message& message) {
  if (!std::exchange(message.holds_credit, false) || !hears_of(message)) return;
  Inbox& at = inbox(message.command.target);
  if (at.gets_waiting.empty()) {
    --at.gets_under_way;
    return;
  }
  const std::uint32_t next = at.gets_waiting.front();
  at.gets_waiting.pop_front();
  messages_[next].holds_credit = true;
  ask_for_get(next);
}

void Messages::tell_done(std::uint32_t index) {
  Message& message = messages_[index];
  message.awaits_processor = true;
  ask_processor(message.command.target, {.kind = WorkKind::tell_done, .item = index, .life = message.life});
}

void Messages::done_acknowledged(std::uint32_t index) {
  Message& message = messages_[index];
  const EndpointId source = message.command.source;
  const Token token = message.command.token;
  message.told_done = true;
  if (hears_of(message)) {
    deliver(index);
  } else {
    settle(message.receive);
    message.holds_credit = false;
    end(index);
    host_.dropped(token);
  }
  host_.sent(source, token);
}

// The CPU of an end-point that is closed issues nothing any more.
void Messages::abandon_gets(EndpointId endpoint) {
  Inbox& closed = inbox(endpoint);
  for (const std::uint32_t message : std::exchange(closed.gets_waiting, {})) drop(message);
  for (std::uint32_t index = 0; index < messages_.size(); ++index) {
    const Message& message = messages_[index];
    if (message.awaits_processor && message.command.target == endpoint && message.receive != none) drop(index);
  }
}

}  // namespace dryfly::nic
