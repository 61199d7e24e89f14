#include "core/nic/remote_memory.hpp"

#include "core/nic/totals.hpp"

namespace dryfly::nic {

namespace {

DmaCommand dma_command(RmaKind kind) {
  switch (kind) {
    case RmaKind::write:
      return DmaCommand::put;
    case RmaKind::read:
      return DmaCommand::get;
    case RmaKind::atomic:
      return DmaCommand::atomic;
    case RmaKind::fetching_atomic:
      return DmaCommand::fetching_atomic;
  }
  DRYFLY_UNREACHABLE("a kind of access");
}

bool is_answered(RmaKind kind) { return kind == RmaKind::read || kind == RmaKind::fetching_atomic; }

Protocol protocol_of(RmaKind kind) {
  switch (kind) {
    case RmaKind::write:
      return Protocol::put;
    case RmaKind::read:
      return Protocol::get;
    case RmaKind::atomic:
    case RmaKind::fetching_atomic:
      return Protocol::atomic;
  }
  DRYFLY_UNREACHABLE("a kind of RMA");
}

}  // namespace

RemoteMemory::RemoteMemory(Transport& transport, Host& host, const NicSpec& spec, NicTotals& totals)
    : transport_(transport), host_(host), spec_(spec), totals_(totals) {}

void RemoteMemory::start(const RmaCommand& command) {
  const std::uint32_t index = accesses_.acquire();
  Access& access = accesses_[index];
  access.command = command;
  access.by_memory = transport_.by_memory(command.source, command.target);
  if (!access.by_memory) ++access.unacknowledged;
  if (!access.by_memory) count_command(command);
  const Bytes payload = command.kind == RmaKind::read ? Bytes{0} : command.size;
  const Fetched fetched = fetched_for(command);
  Journey journey{command.source, command.target, payload, command.traffic_class, command.ordered};
  // Software copies by the memory of a node, and puts operands into commands.
  if (!access.by_memory && fetched == Fetched::payload) {
    journey.ends.from = command.gpu;
    if (transport_.paths().translations().modelled() && command.kind == RmaKind::write)
      journey.pages = host_.buffer_pages(command.source, command.token);
  }
  if (!access.by_memory && payload != Bytes{0}) journey.ends.to = command.target_gpu;
  transport_.send_command(journey, {Step::rma_request, index}, fetched);
}

// The command of an atomic is never longer than one with a short payload, and that of a read has none.
Fetched RemoteMemory::fetched_for(const RmaCommand& command) const {
  if (command.kind == RmaKind::read) return Fetched::nothing;
  if (!is_inline(command)) return Fetched::payload;
  return command.kind == RmaKind::write && command.size > spec_.pushed_max ? Fetched::command : Fetched::nothing;
}

// Only what carries its operands itself is an inline command; a read is one for the DMA engine.
bool RemoteMemory::is_inline(const RmaCommand& command) const {
  return command.kind != RmaKind::read && command.size <= spec_.inline_max && !command.by_dma;
}

void RemoteMemory::count_command(const RmaCommand& command) {
  NicCounters& counters = transport_.counters_of(command.source);
  if (is_inline(command)) return counters.add(Counter::cq_num_idc_cmds);
  counters.add_dma(dma_command(command.kind));
}

void RemoteMemory::count_request(const RmaCommand& command) {
  NicCounters& counters = transport_.counters_of(command.target);
  counters.add(Counter::lpe_net_match_requests);
  counters.add(Counter::lpe_net_match_priority);
  if (command.kind == RmaKind::atomic || command.kind == RmaKind::fetching_atomic) counters.add(Counter::lpe_amo_cmds);
  if (command.kind == RmaKind::fetching_atomic) counters.add(Counter::lpe_famo_cmds);
}

void RemoteMemory::arrived(Parcel parcel, std::uint32_t switch_hops) {
  if (parcel.step == Step::rma_request) return request_arrived(parcel.item, switch_hops);
  DRYFLY_CHECK(parcel.step == Step::rma_response);
  response_arrived(parcel.item);
}

Landing RemoteMemory::landing_of(Parcel parcel) const {
  const RmaCommand& command = accesses_[parcel.item].command;
  const bool translates = transport_.paths().translations().modelled();
  if (parcel.step == Step::rma_response) {
    const DmaPages pages = translates ? host_.buffer_pages(command.source, command.token) : DmaPages{};
    return {command.source, command.size, command.gpu, pages};
  }
  if (command.kind == RmaKind::read) return {command.target, Bytes{0}};
  const DmaPages pages = translates ? host_.target_pages(command.source, command.token) : DmaPages{};
  return {command.target, command.size, command.target_gpu, pages};
}

void RemoteMemory::acknowledged(Parcel parcel) {
  const RmaCommand& command = accesses_[parcel.item].command;
  if (command.flush && !is_answered(command.kind)) return transport_.flush(command.target, parcel);
  flushed(parcel);
}

void RemoteMemory::flushed(Parcel parcel) {
  DRYFLY_CHECK(accesses_[parcel.item].unacknowledged > 0);
  --accesses_[parcel.item].unacknowledged;
  complete_if_idle(parcel.item);
}

// A request whose acknowledgements alone were lost is an error at its source too, unless its answer still comes.
void RemoteMemory::failed(Parcel parcel, bool delivered) {
  Access& access = accesses_[parcel.item];
  DRYFLY_CHECK(access.unacknowledged > 0);
  --access.unacknowledged;
  const bool answered = is_answered(access.command.kind);
  if (delivered && answered) return complete_if_idle(parcel.item);
  access.error = error_unreachable;
  if (!delivered) access.over = true;
  if (!delivered && answered) {
    const EndpointId source = access.command.source;
    const Token token = access.command.token;
    complete_if_idle(parcel.item);
    return host_.rma_done(source, token, error_unreachable);
  }
  complete_if_idle(parcel.item);
}

void RemoteMemory::request_arrived(std::uint32_t index, std::uint32_t switch_hops) {
  Access& access = accesses_[index];
  const RmaCommand& command = access.command;
  if (!access.by_memory) count_request(command);
  if (transport_.same_network(command.source, command.target)) {
    const bool on_node = transport_.on_node(command.source, command.target);
    count(totals_, protocol_of(command.kind), on_node, switch_hops, command.size);
    host_.rma_delivered(command, on_node, switch_hops);
    access.error = host_.apply(command.source, command.token);
  } else {
    access.error = error_other_network;
  }
  if (is_answered(command.kind)) return respond(index);
  access.over = true;
  complete_if_idle(index);
}

void RemoteMemory::respond(std::uint32_t index) {
  Access& access = accesses_[index];
  const RmaCommand& command = access.command;
  if (!access.by_memory) ++access.unacknowledged;
  const bool refused = access.error != 0;
  Journey back{command.target, command.source, refused ? Bytes{0} : command.size, command.traffic_class, false};
  if (!access.by_memory && !refused) back.ends = {.from = command.target_gpu, .to = command.gpu};
  if (command.kind == RmaKind::read && !refused) {
    if (!access.by_memory && transport_.paths().translations().modelled())
      back.pages = host_.target_pages(command.source, command.token);
    transport_.fetch_and_send(back, {Step::rma_response, index});
  } else {
    transport_.send(back, {Step::rma_response, index});
  }
}

void RemoteMemory::response_arrived(std::uint32_t index) {
  Access& access = accesses_[index];
  const EndpointId source = access.command.source;
  const Token token = access.command.token;
  const int error = access.error;
  DRYFLY_CHECK(is_answered(access.command.kind) && !access.over);
  access.over = true;
  complete_if_idle(index);
  host_.rma_done(source, token, error);
}

// The data that a read or fetch asked for completes it at its source, everything else this does.
void RemoteMemory::complete_if_idle(std::uint32_t index) {
  const Access& access = accesses_[index];
  if (!access.over || access.unacknowledged > 0) return;
  const RmaCommand command = access.command;
  const int error = access.error;
  accesses_.release(index);
  if (!is_answered(command.kind)) host_.rma_done(command.source, command.token, error);
}

}  // namespace dryfly::nic
