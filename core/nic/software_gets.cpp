#include "core/nic/software_gets.hpp"

namespace dryfly::nic {

void SoftwareGets::open(EndpointId endpoint, const EndpointSettings& settings) {
  if (endpoint.value >= gets_.size()) gets_.resize(endpoint.value + std::size_t{1});
  Gets& opened = gets_[endpoint.value];
  DRYFLY_CHECK(opened.waiting.empty());
  opened.traffic_class = settings.software_class;
  opened.most = settings.software_gets;
  opened.under_way = 0;
}

bool SoftwareGets::got_by_processor(const Message& message) const {
  return !message.by_memory && (message.matched_by_software() || !spec_.gets_by_nic);
}

void SoftwareGets::ask_to_look(std::uint32_t index) {
  messages_[index].state.move_to(MessageState::unexpected_asked);
  ask(index);
}

void SoftwareGets::ask_for_get(std::uint32_t index) {
  const bool asked = messages_[index].state == MessageState::unexpected_asked;
  messages_[index].state.move_to(MessageState::asked);
  if (!asked) ask(index);
}

// Software that matches has that to do as well.
void SoftwareGets::ask(std::uint32_t index) {
  const Message& message = messages_[index];
  inboxes_.ask_processor(message.command.target, {.kind = WorkKind::software_get,
                                                  .item = index,
                                                  .life = message.life,
                                                  .count = message.in_software() && !message.holds_credit() ? 1U : 0U});
}

void SoftwareGets::software_get(std::uint32_t index) {
  Message& message = messages_[index];
  Gets& gets = gets_[message.command.target.value];
  if (!message.holds_credit()) {
    if (gets.under_way >= gets.most) {
      message.state.move_to(MessageState::queued);
      return gets.waiting.push(index);
    }
    ++gets.under_way;
  }
  message.state.move_to(MessageState::getting_by_software);
  message.answer_class = gets.traffic_class;
  messages_.expect_acknowledgement(index);
  transport_.counters_of(message.command.target).add_dma(DmaCommand::get);
  transport_.send_command(to_source(message), {Step::get_request, index}, Fetched::nothing);
}

// The next that waits for a credit has it from now on; the CPU issues its Get when it gets to it.
void SoftwareGets::return_credit(const Message& message) {
  if (!message.holds_credit() || !inboxes_.hears_of(message)) return;
  Gets& gets = gets_[message.command.target.value];
  DRYFLY_CHECK(gets.under_way > 0);
  if (gets.waiting.empty()) {
    --gets.under_way;
    return;
  }
  const std::uint32_t next = gets.waiting.pop();
  messages_[next].state.move_to(MessageState::granted);
  ask(next);
}

void SoftwareGets::tell_done(std::uint32_t index) {
  Message& message = messages_[index];
  message.state.move_to(MessageState::telling);
  inboxes_.ask_processor(message.command.target, {.kind = WorkKind::tell_done, .item = index, .life = message.life});
}

void SoftwareGets::worked(const Work& work) {
  Message& message = messages_[work.item];
  if (message.life != work.life || !message.awaits_processor()) return;
  if (message.state == MessageState::unexpected_asked) return message.state.move_to(MessageState::unexpected);
  if (work.kind == WorkKind::software_get) return software_get(work.item);
  DRYFLY_CHECK(work.kind == WorkKind::tell_done);
  message.state.move_to(MessageState::told);
  messages_.expect_acknowledgement(work.item);
  transport_.send_command(to_source(message), {Step::done, work.item}, Fetched::nothing);
}

std::vector<std::uint32_t> SoftwareGets::abandoned_at(EndpointId closed) {
  Fifo<std::uint32_t>& waiting = gets_[closed.value].waiting;
  std::vector<std::uint32_t> abandoned;
  while (!waiting.empty()) abandoned.push_back(waiting.pop());
  for (std::uint32_t index = 0; index < messages_.size(); ++index) {
    const Message& message = messages_[index];
    if (message.awaits_processor() && message.receive != none && message.command.target == closed) {
      abandoned.push_back(index);
    }
  }
  return abandoned;
}

}  // namespace dryfly::nic
