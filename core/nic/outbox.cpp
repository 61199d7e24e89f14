#include "core/nic/outbox.hpp"

#include <algorithm>

namespace dryfly::nic {

void Outbox::open(EndpointId endpoint, const EndpointSettings& settings) {
  if (endpoint.value >= limits_.size()) limits_.resize(endpoint.value + std::size_t{1});
  limits_[endpoint.value] = {.eager_max = settings.eager_max.value_or(spec_.eager_max),
                             .rendezvous_head = settings.rendezvous_head.value_or(spec_.rendezvous_head),
                             .notifies_done = settings.notifies_done};
}

// What is in a segment the source may forget, so it must be staged: the host stages what is eager.
Outbox::Limits Outbox::limits_by_memory(const Limits& source) const {
  return {.eager_max = std::min(spec_.memory.segment_max, source.eager_max), .rendezvous_head = Bytes{0}};
}

// libfabric's shm hands a GPU's memory to its target however short the message is, and copies nothing itself.
bool Outbox::is_handed_over(const Message& message) {
  return message.by_memory && message.command.gpu != 0 && message.command.size > Bytes{0};
}

void Outbox::choose_protocol(Message& message) const {
  const SendCommand& command = message.command;
  DRYFLY_CHECK(command.source.value < limits_.size());
  const Limits source =
      message.by_memory ? limits_by_memory(limits_[command.source.value]) : limits_[command.source.value];
  const bool fits = command.size <= spec_.inline_max;
  message.protocol = is_handed_over(message)                    ? Protocol::rendezvous
                     : fits && !command.by_dma                  ? Protocol::inlined
                     : fits || command.size <= source.eager_max ? Protocol::eager
                                                                : Protocol::rendezvous;
  message.head = message.rendezvous() ? source.rendezvous_head : command.size;
  DRYFLY_CHECK(message.head < command.size || !message.rendezvous());  // there is always something left to get
  message.notifies_done = source.notifies_done && message.rendezvous() && !message.by_memory;
}

void Outbox::launch(std::uint32_t index) {
  Message& message = messages_[index];
  message.note_sent();
  if (!message.by_memory) {
    messages_.expect_acknowledgement(index);
    NicCounters& counters = transport_.counters_of(message.command.source);
    if (message.protocol == Protocol::inlined) {
      counters.add(Counter::cq_num_idc_cmds);
    } else {
      counters.add_dma(message.rendezvous() ? DmaCommand::rendezvous_put : DmaCommand::put);
    }
  }
  const Fetched fetched = message.protocol != Protocol::inlined     ? Fetched::payload
                          : message.command.size > spec_.pushed_max ? Fetched::command
                                                                    : Fetched::nothing;
  Journey journey = to_target(message, message.head, true);
  if (fetched == Fetched::payload) {
    journey.ends.from = message.command.gpu;
    journey.pages = pages_of(message, Bytes{0});
  }
  transport_.send_command(journey, {Step::message, index}, fetched);
}

// By memory the target's own core copies the rest.
void Outbox::get(std::uint32_t index) {
  Message& message = messages_[index];
  message.state.move_to(MessageState::getting);
  if (message.by_memory) return answer_get(index);
  messages_.expect_acknowledgement(index);
  transport_.counters_of(message.command.target).add(Counter::lpe_rndzv_puts_offloaded);
  transport_.send(to_source(message), {Step::get_request, index});
}

void Outbox::answer_get(std::uint32_t index) {
  const Message& message = messages_[index];
  if (!message.by_memory) messages_.expect_acknowledgement(index);
  Journey answer = to_target(message, message.command.size - message.head, false);
  answer.traffic_class = message.answer_class;
  answer.ends = {.from = message.command.gpu, .to = message.target_gpu};
  answer.pages = pages_of(message, message.head);
  answer.memory = message.command.memory;
  transport_.fetch_and_send(answer, {Step::get_data, index});
}

DmaPages Outbox::pages_of(const Message& message, Bytes from) const {
  if (!transport_.paths().translations().modelled() || message.by_memory) return {};
  return host_.buffer_pages(message.command.source, message.command.token).behind(from.count);
}

}  // namespace dryfly::nic
