#include "core/nic/transport.hpp"

#include <algorithm>
#include <iterator>

#include "core/unit/fetch.hpp"

namespace dryfly::nic {

namespace {

// What ends in host memory passes the ingress stage; what one NIC says to another ends in the NIC.
bool ends_in_memory(Step step) {
  return step != Step::get_request && step != Step::done && step != Step::matched && step != Step::collective &&
         step != Step::no_room;
}

// By memory: what is read the core that wants it reads, and what lies in a segment it copies out; everything else the
// source's core writes.
bool is_read(Parcel parcel) {
  return parcel.step == Step::get_data || parcel.step == Step::rma_response || parcel.step == Step::placement;
}

// Its acknowledgement carries what the target's matching said.
bool answered_when_matched(Step step) { return step == Step::message || step == Step::rma_request; }

// What will be needed soon is prefetched: the records of a large run are far larger than any cache, and waiting for
// them is most of what a message costs. Nothing of it changes a result. How many others come before what is prefetched,
// by the stage of Recipient::soon:
constexpr std::size_t others_before[] = {8, 4, 2};

template <class Arrivals>
void look_ahead(const Arrivals& arrivals, const Recipient& recipient) {
  for (unsigned stage = 0; stage < std::size(others_before); ++stage) {
    if (const auto* next = arrivals.ahead(others_before[stage])) recipient.soon(next->parcel, stage);
  }
}

}  // namespace

Transport::Transport(Engine& engine, Carrier& network, const NicSpec& spec, Recipient& recipient)
    : engine_(engine),
      network_(network),
      spec_(spec),
      recipient_(recipient),
      counters_(engine),
      paths_(spec_, counters_),
      memory_(spec_.memory),
      paths_differ_(paths_.translations().modelled()) {
  engine_.attach(ComponentClass::nic, *this, 3);
  network_.connect(*this);
  if (paths_.holds_up()) network_.attach(paths_);
}

void Transport::open(EndpointId endpoint, NicId nic, NodeId node, const MemoryPlace& place,
                     const EndpointSettings& settings) {
  if (endpoint.value >= ports_.size()) ports_.resize(endpoint.value + std::size_t{1});
  if (nic.value >= next_command_.size()) {
    next_command_.resize(nic.value + std::size_t{1});
    next_answer_.resize(nic.value + std::size_t{1});
  }
  std::unique_ptr<Port>& at = ports_[endpoint.value];
  DRYFLY_CHECK(!at || at->node == node);
  if (!at) at = std::make_unique<Port>();
  Port& opened = *at;
  opened.nic = nic;
  opened.node = node;
  opened.network = settings.network;
  opened.writes_commands = settings.writes_commands;
  opened.in_memory = settings.in_memory;
  opened.counters = counters_.open(nic);
  opened.place = paths_.place(nic, node, place);
  opened.at = CopyPlace::of(place);
  cores_copy_ |= opened.in_memory && memory_.is_limited();
  paths_differ_ |= !opened.place.plain;
}

void Transport::move(EndpointId endpoint, const MemoryPlace& place) {
  Port& moved = port(endpoint);
  moved.place = paths_.place(moved.nic, moved.node, place);
  moved.at = CopyPlace::of(place);
  paths_differ_ |= !moved.place.plain;
}

void Transport::submit(const Transfer& transfer) {
  const Step step = Parcel::of_handle(transfer.handle).step;
  const bool answer = step == Step::get_data || step == Step::rma_response || step == Step::done;
  count_transfer(counters_.of(transfer.source), counters_.of(transfer.target), transfer, answer, spec_.framing);
  if (paths_differ_ && ends_in_memory(step)) {
    const EndpointId lands = recipient_.landing_of(Parcel::of_handle(transfer.handle)).at;
    if (port(lands).place.link_in != 0) paths_.sets_out(transfer.handle, engine_.now());
  }
  network_.submit(transfer);
}

// One payload at a time, and what arrives meanwhile makes the next one wait longer.
void Transport::cross(std::uint32_t link) {
  const Instant now = engine_.now();
  if (paths_.free_at(link) <= now) submit(paths_.next_to_cross(link, now));
  if (paths_.has_waiting(link)) schedule(paths_.free_at(link), Stage::crossing, EndpointId{link});
}

void Transport::send_command(const Journey& journey, Parcel parcel, Fetched fetched) {
  if (by_memory(journey.from, journey.to)) return copy(journey, parcel);
  Port& source = port(journey.from);
  Instant& next_command = next_command_[source.nic.value];
  const Instant taken = std::max(engine_.now(), next_command);
  next_command = taken + spec_.command_interval;
  Instant ready = taken + spec_.egress_latency + source.place.command;
  int reads = fetched == Fetched::nothing ? 0 : 1;
  if (!source.writes_commands && fetched != Fetched::command) ++reads;
  for (; reads > 0; --reads) ready = ready + spec_.dma_read_latency + source.place.crossing + source.place.crossing;
  if (journey.pages.needed()) {
    const Instant asked{ready.ps - spec_.dma_read_latency.ps};
    ready = ready + paths_.translations().reading(source.nic, journey.pages, journey.size, asked);
  }
  source.egress_until = std::max(source.egress_until, ready);
  source.egress.push(transfer(journey, parcel));
  schedule(source.egress_until, Stage::egress, journey.from);
}

void Transport::send(const Journey& journey, Parcel parcel) {
  if (by_memory(journey.from, journey.to)) return copy(journey, parcel);
  if (parcel.step != Step::get_request) return submit(transfer(journey, parcel));
  gets_.push(transfer(journey, parcel));
  schedule(engine_.now() + spec_.rendezvous_latency, Stage::get);
}

void Transport::fetch_and_send(const Journey& journey, Parcel parcel) {
  if (by_memory(journey.from, journey.to)) return copy(journey, parcel);
  Port& source = port(journey.from);
  const Instant begin = spec_.answering.begin(journey.size, engine_.now(), next_answer_[source.nic.value]);
  if (begin > engine_.now() || !source.place.plain || journey.pages.needed()) {
    Instant ready = begin + spec_.dma_read_latency + source.place.crossing + source.place.crossing;
    if (journey.pages.needed()) {
      ready = ready + paths_.translations().reading(source.nic, journey.pages, journey.size, begin);
    }
    source.own_fetch_until = std::max(source.own_fetch_until, ready);
    source.own_fetch.push(transfer(journey, parcel));
    return schedule(source.own_fetch_until, Stage::own_fetch, journey.from);
  }
  fetch_.push(transfer(journey, parcel));
  schedule(engine_.now() + spec_.dma_read_latency, Stage::fetch);
}

void Transport::place(Parcel parcel, bool at_once) {
  if (at_once) {
    handover_.push(parcel);
    schedule(engine_.now(), Stage::handover);
  } else {
    ingress_.push({parcel, 0});
    schedule(engine_.now() + spec_.ingress_latency, Stage::ingress);
  }
}

// The way to memory and back is what a fetch takes. The acknowledgement that this holds back has waited for the ingress
// stage already.
void Transport::flush(EndpointId target, Parcel parcel) {
  Port& port = this->port(target);
  const Duration crossing = port.place.plain ? Duration{} : port.place.crossing;
  const Duration lag = paths_.arrival_lag(paths_.lane_of(port.nic), engine_.now());
  const Instant over = engine_.now() + lag + spec_.dma_read_latency + crossing + crossing + crossing;
  port.flush_until = std::max(port.flush_until, over);
  port.flushes.push(parcel);
  schedule(port.flush_until, Stage::flush, target);
}

void Transport::copy(const Journey& journey, Parcel parcel) {
  const bool reads = is_read(parcel);
  const EndpointId by = reads ? journey.to : journey.from;
  const EndpointId other = reads ? journey.from : journey.to;
  Port& copier = port(by);
  const Copy copy{.parcel = parcel,
                  .size = journey.size,
                  .way = {.ends = journey.ends,
                          .copier = copier.at,
                          .other = port(other).at,
                          .reads = reads,
                          .memory = journey.memory}};
  const bool may_begin = !copier.is_copying && copier.later_copies.empty();
  const bool is_free = copier.copies_until <= engine_.now();
  if (may_begin && (is_free || !memory_.is_shared_by(copy.size, copy.way))) {
    const Instant begin = std::max(engine_.now(), copier.copies_until);
    return follow(by, copy, memory_.begin(copier.node, begin, copy.size, copy.way));
  }
  copier.later_copies.push(copy);
  if (may_begin) schedule(copier.copies_until, Stage::next_copy, by);
}

// The latency of the least distance lies before the match and behind it, in the ways to the end-points' processors.
void Transport::follow(EndpointId by, const Copy& copy, const NodeMemory::Copying& copying) {
  const Nearness& near = spec_.memory.near;
  Port& copier = port(by);
  copier.is_copying = !copying.is_over;
  if (copier.is_copying) {
    copier.copy = copy;
    copier.copy_place = copying.place;
    return schedule(copying.at, Stage::look, by);
  }
  copier.copies_until = copying.at;
  const std::size_t seen_at = copy.way.reads ? 0 : near.distance(copy.way.copier.core, copy.way.other.core);
  copier.copies[seen_at].push(copy.parcel);
  const Duration farther{near.way(seen_at).latency.ps - near.way(0).latency.ps};
  schedule(copier.copies_until + farther, copies_of[seen_at], by);
  if (!copier.later_copies.empty()) schedule(copier.copies_until, Stage::next_copy, by);
}

void Transport::delivered(std::uint32_t handle, std::uint32_t switch_hops) {
  const Arrival arrival{Parcel::of_handle(handle), switch_hops};
  if (!ends_in_memory(arrival.parcel.step)) return recipient_.arrived(arrival.parcel, arrival.switch_hops);
  if (cores_copy_) {
    const Landing landing = recipient_.landing_of(arrival.parcel);
    const Port& target = port(landing.at);
    if (landing.gpu == 0) memory_.nic_writes(target.nic, target.node, engine_.now(), landing.size, target.at);
  }
  if (paths_differ_) {
    const Landing landing = recipient_.landing_of(arrival.parcel);
    Port& target = port(landing.at);
    if (!target.place.plain || landing.gpu != 0 || landing.pages.needed() || !target.own_ingress.empty()) {
      return arrive_by_own_way(target, arrival, landing);
    }
  }
  ingress_.push(arrival);
  schedule(engine_.now() + spec_.ingress_latency, Stage::ingress);
}

// In the order in which they came off the link: what a NIC writes does not overtake what it has written before.
void Transport::arrive_by_own_way(Port& target, const Arrival& arrival, const Landing& landing) {
  const std::uint32_t lane = landing.gpu != 0 ? paths_.lane_of(target.nic) : target.place.lane;
  Duration lag = std::max(paths_.arrival_lag(lane, engine_.now()),
                          paths_.crossing_lag(target.place, arrival.parcel.handle(), landing.size, engine_.now()));
  if (landing.pages.needed()) {
    lag = std::max(lag, paths_.translations().writing(target.nic, landing.pages, landing.size, engine_.now()));
  }
  const Instant there = engine_.now() + spec_.ingress_latency + target.place.crossing + lag;
  target.own_ingress_until = std::max(target.own_ingress_until, there);
  target.own_ingress.push(arrival);
  schedule(target.own_ingress_until, Stage::own_ingress, landing.at);
}

void Transport::acknowledged(std::uint32_t handle) {
  const Parcel parcel = Parcel::of_handle(handle);
  if (!answered_when_matched(parcel.step)) return recipient_.acknowledged(parcel);
  settled_.push(parcel);
  schedule(engine_.now() + spec_.ingress_latency, Stage::settled);
}

void Transport::failed(std::uint32_t handle, bool delivered) {
  recipient_.failed(Parcel::of_handle(handle), delivered);
}

void Transport::hold(Parcel parcel, Duration time) {
  schedule(engine_.now() + time, Stage::held, EndpointId{parcel.handle()});
}

void Transport::handle(Event event) {
  ++events_.handled;
  const Stage stage = stage_of(event);
  const EndpointId endpoint{static_cast<std::uint32_t>(event.key)};
  Arrival arrival;
  switch (stage) {
    case Stage::ingress:
      look_ahead(ingress_, recipient_);
      arrival = ingress_.pop();
      break;
    case Stage::handover:
      arrival = {handover_.pop(), 0};
      break;
    case Stage::copies:
      arrival = {port(endpoint).copies[0].pop(), 0};
      break;
    case Stage::copies_to_region:
      arrival = {port(endpoint).copies[1].pop(), 0};
      break;
    case Stage::copies_to_socket:
      arrival = {port(endpoint).copies[Nearness::across_sockets].pop(), 0};
      break;
    case Stage::next_copy: {
      Port& copier = port(endpoint);
      const Copy copy = copier.later_copies.pop();
      return follow(endpoint, copy, memory_.begin(copier.node, engine_.now(), copy.size, copy.way));
    }
    case Stage::look: {
      const Port& copier = port(endpoint);
      return follow(endpoint, copier.copy, memory_.look(copier.node, engine_.now(), copier.copy_place));
    }
    case Stage::fetch:
      return submit(fetch_.pop());
    case Stage::get:
      return submit(gets_.pop());
    case Stage::egress:
    case Stage::own_fetch: {
      Port& source = port(endpoint);
      const Transfer transfer = stage == Stage::egress ? source.egress.pop() : source.own_fetch.pop();
      const std::uint32_t link = source.place.link_out;
      if (link == 0) return submit(transfer);
      if (paths_.wait_to_cross(link, transfer)) cross(link);
      return;
    }
    case Stage::settled:
      if (const Parcel* next = settled_.ahead(others_before[0])) recipient_.soon(*next, 0);
      return recipient_.acknowledged(settled_.pop());
    case Stage::own_ingress:
      arrival = port(endpoint).own_ingress.pop();
      break;
    case Stage::held:  // the parcel itself stands in for an end-point's number
      arrival = {Parcel::of_handle(endpoint.value), 0};
      break;
    case Stage::flush:
      return recipient_.flushed(port(endpoint).flushes.pop());
    case Stage::crossing:  // and here a link between sockets
      return cross(endpoint.value);
  }
  recipient_.arrived(arrival.parcel, arrival.switch_hops);
}

Transfer Transport::transfer(const Journey& journey, Parcel parcel) {
  paths_differ_ |= journey.ends.to != 0;
  const Port& source = port(journey.from);
  if (cores_copy_ && journey.ends.from == 0) {
    memory_.nic_reads(source.nic, source.node, engine_.now(), journey.size, source.at);
  }
  return {source.nic,
          port(journey.to).nic,
          journey.size,
          parcel.handle(),
          journey.traffic_class,
          journey.ordered,
          static_cast<std::uint16_t>(journey.to.value % flow_limit),
          journey.ends.from,
          journey.ends.to};
}

void Transport::schedule(Instant at, Stage stage, EndpointId endpoint) {
  constexpr auto component = static_cast<std::uint64_t>(ComponentClass::nic) << component_class_shift;
  ++events_.scheduled;
  engine_.schedule(at, component | static_cast<std::uint64_t>(stage) << stage_shift | endpoint.value);
}

// Of the stages with a queue for each end-point; the others look ahead in theirs.
void Transport::prefetch(Event event, unsigned stage) const {
  if (stage_of(event) != Stage::own_ingress) return;
  const Port& target = port(EndpointId{static_cast<std::uint32_t>(event.key)});
  if (stage == 0) {
    fetch_line(&target.own_ingress);
  } else if (const Arrival* head = target.own_ingress.ahead(0)) {
    recipient_.soon(head->parcel, stage - 1);
  }
}

}  // namespace dryfly::nic
