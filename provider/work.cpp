#include "provider/work.hpp"

#include <stdio.h>
#include <stdlib.h>

#include "provider/device_memory.hpp"
#include "provider/ep.hpp"

namespace dryfly::provider {

namespace {

// As in dryfly::WorkKind, which the provider cannot include.
constexpr std::uint64_t drain_events = 1;
constexpr std::uint64_t fatal_entries = 7;
constexpr std::uint64_t fatal_events = 8;
constexpr std::uint64_t tell_again = 11;
// Of no such kind: an event of its own.
constexpr std::uint64_t head_to_copy = 1U << 8;

// libfabric's words and its end; the address is ours.
[[noreturn]] void give_up(const Session& session, std::uint32_t endpoint, const char* why) {
  fprintf(stderr, "libfabric: cxi: RXC (%#x:%u):[Fatal] %s\n", session.channel().rank(), endpoint, why);
  abort();
}

Completion entry_of(const wire::Event& event) {
  Completion entry{};
  entry.is_work = true;
  if (event.kind == wire::EventKind::head_to_copy) {
    entry.tag = head_to_copy;
    entry.buffer = reinterpret_cast<void*>(event.buffer);
    entry.length = event.length;
    entry.source = event.endpoint;
    return entry;
  }
  entry.tag = event.work_kind;
  entry.data = event.work_item;
  entry.length = event.work_count;
  entry.context = reinterpret_cast<void*>(event.work_generation);
  entry.source = event.endpoint;
  return entry;
}

}  // namespace

bool accept_work(const Session& session, const wire::Event& event) {
  Process& state = session.state();
  Endpoint* endpoint = event.endpoint < wire::endpoint_count_max ? state.endpoints[event.endpoint] : nullptr;
  if (endpoint == nullptr) return false;
  CompletionQueue* queue = endpoint->receive.queue != nullptr ? endpoint->receive.queue : endpoint->transmit.queue;
  if (queue == nullptr || !queue->reserve()) {
    do_work(session, entry_of(event));
    return false;
  }
  queue->put(entry_of(event));
  state.news.reported(queue->outlet);
  return true;
}

void do_work(const Session& session, const Completion& work) {
  rank::Channel& channel = session.channel();
  Endpoint* endpoint = session.state().endpoints[work.source];
  if (work.tag == fatal_entries) {
    give_up(session, work.source,
            "LE resources not recovered during flow control. FI_CXI_RX_MATCH_MODE=[hybrid or software] is required");
  }
  if (work.tag == fatal_events) give_up(session, work.source, "H/W Event Queue overflow detected.");
  if (endpoint == nullptr) return;
  if (work.tag == head_to_copy) {
    const Environment& environment = session.state().environment;
    return copy_to_device(environment, way_to_device(environment, *endpoint, work.length), work.buffer, work.length);
  }
  // Work that comes message by message; taking events from the queue is part of reading it.
  channel.charge(channel.header().costs.match_ps * work.length * (work.tag == drain_events ? 0 : 1));
  constexpr std::uint64_t microsecond_ps = 1'000'000;
  if (work.tag == tell_again) channel.charge(session.state().environment.retry_delay_us * microsecond_ps);
  auto command = endpoint->command(wire::CommandKind::work_done);
  command.work_kind = work.tag;
  command.work_item = work.data;
  command.work_count = work.length;
  command.work_generation = reinterpret_cast<std::uint64_t>(work.context);
  channel.push(command, nullptr);
}

}  // namespace dryfly::provider
