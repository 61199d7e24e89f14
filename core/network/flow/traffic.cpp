#include "core/network/flow/traffic.hpp"

#include <algorithm>
#include <utility>

#include "core/network/fabric/reach.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/random.hpp"

namespace dryfly::flow {
namespace {

// A transfer of more packets is a stream (docs/model/flows.md#short-and-long).
constexpr std::uint32_t most_short = 16;
constexpr std::uint32_t packets_in_piece = BusTurns::packets_in_piece;
// A stream in trouble is looked at in so many slices.
constexpr std::uint32_t slices = 8;

// What a way's load is shifted by in the comparison with a minimal one (docs/model/routing.md#form-of-the-bias).
double detour_speed(const Spec& spec) {
  if (spec.text(fields::fabric_routing_algorithm) != "adaptive") return 1;
  return 1.0 / static_cast<double>(std::uint64_t{1} << spec.small(fields::fabric_routing_bias_shift));
}

// What is settled before a full link between switches: what makes a packet take a detour, or without detours a buffer.
Duration settled_in_fabric(const Spec& spec, const fabric::FabricSpec& fabric) {
  const bool adapts = spec.text(fields::fabric_routing_algorithm) == "adaptive";
  const Bytes queued = adapts ? Bytes{2 * spec.number(fields::fabric_routing_bias_bytes)} : fabric.input_buffer;
  return transmission_time(queued, fabric.rate);
}

void count_refused(std::uint32_t packets, FaultTotals& faults, NicAccount& account) {
  faults.pieces_refused += packets;
  account.refusals += packets;
  account.sequence_errors += packets;
}

void count_sent_again(std::uint32_t packets, FaultTotals& faults, NicAccount& account) {
  faults.pieces_sent_again += packets;
  account.sent_again += packets;
}

}  // namespace

Traffic::Traffic(Engine& engine, const Dragonfly& dragonfly, const Spec& text, std::optional<Instant> start,
                 std::uint32_t life)
    : engine_(engine),
      fabric_(fabric::FabricSpec::read(text)),
      wiring_(dragonfly, fabric_, text),
      frames_(fabric_),
      pipes_(dragonfly, fabric_, wiring_, engine, settled_in_fabric(text, fabric_)),
      ways_(dragonfly, text, fabric_, wiring_, pipes_),
      shorts_(engine, fabric_, dragonfly.nic_count(), transfers_, pipes_, *this, event_key(life, EventKind::nic_wakes),
              event_key(life, EventKind::hold_over)),
      streams_(engine, dragonfly, fabric_.qos, ways_, pipes_, detour_speed(text),
               event_key(life, EventKind::stream_due), event_key(life, EventKind::shares_due)),
      bus_(engine, frames_, dragonfly.nic_count(), transfers_, event_key(life, EventKind::bus_free)),
      begun_(dragonfly.nic_count()),
      life_(life) {
  if (!fabric::FaultPlan::any_in(text)) return;
  const fabric::FaultPlan plan = fabric::plan_from(text, dragonfly, wiring_, start.has_value());
  retry_ = plan.retry;
  losses_ = std::make_unique<Losses>(plan, dragonfly, engine, wiring_, start.value_or(Instant{}),
                                     frames_.transmission_ps(frames_.payload_max(), false));
  ways_.managed_by(losses_->manager());
}

void Traffic::connect(TransferSink* sink, HostBus* bus) {
  sink_ = sink;
  bus_.connect(bus);
  shorts_.connect(bus);
}

void Traffic::schedule(std::uint64_t at_ps, EventKind kind, std::uint32_t index) {
  engine_.schedule(Instant{at_ps}, event_key(life_, kind, index));
}

void Traffic::handle(Event event) {
  if (((event.key >> 56) & 0xf) != (life_ & 0xf)) return;
  const auto index = static_cast<std::uint32_t>(event.key);
  switch (static_cast<EventKind>((event.key >> 52) & 0xf)) {
    case EventKind::delivered:
      return deliver(index);
    case EventKind::acknowledged:
      return acknowledge(index);
    case EventKind::stream_due:
      for (std::uint32_t due = streams_.take_due(); due != none; due = streams_.take_due()) stream_due(due);
      return;
    case EventKind::nic_wakes:
      return shorts_.wake({index});
    case EventKind::hold_over:
      return shorts_.end_hold(index);
    case EventKind::bus_free:
      for (std::uint32_t turn = bus_.take_next({index}); turn != none; turn = bus_.take_next({index}))
        start_stream(turn);
      return;
    case EventKind::retry_due:
      return retry(index);
    case EventKind::look:
      losses_->look_is_over();
      if (losses_->look(pipes_)) streams_.expect_solving();
      if (streams_.in_use() > 0 && losses_->asks_for_look()) schedule(losses_->next_look_ps(), EventKind::look, 0);
      return;
    case EventKind::shares_due:
      return streams_.solve();
  }
  DRYFLY_CHECK(false && "an event of no kind");
}

// --- to be sent ---------------------------------------------------------------------------------------------------

void Traffic::submit(const Transfer& asked) {
  DRYFLY_CHECK(asked.source.value < begun_.size() && asked.target.value < begun_.size());
  const std::uint32_t index = transfers_.open(asked, fabric_.qos.of(asked.traffic_class));
  OpenTransfer& transfer = transfers_[index];
  pipes_.meet(transfer.traffic_class);
  transfer.by_bus = bus_.bus() != nullptr && bus_.bus()->concerns(asked);
  const std::uint64_t full = asked.size.count / frames_.payload_max().count;
  const Bytes rest{asked.size.count % frames_.payload_max().count};
  const bool loops = transfer.journey.loops();
  const bool has_rest = rest.count > 0 || full == 0;
  transfer.work_ps = full * frames_.transmission_ps(frames_.payload_max(), loops);
  if (has_rest) transfer.work_ps += frames_.transmission_ps(rest, loops);
  DRYFLY_CHECK(full < none);
  transfer.packets = transfer.missing = static_cast<std::uint32_t>(full) + (has_rest ? 1 : 0);
  const std::uint64_t stream = RandomStream{fabric_.seed, asked.source.value, Purpose::packet}.draw(0);
  transfer.journey.draw = static_cast<std::uint32_t>(mix(stream + begun_[asked.source.value]++) >> 32);
  if (losses_ != nullptr && losses_->look(pipes_)) streams_.expect_solving();
  if (transfer.line == none) return start(index);
  transfers_.append_to_line(index);
  if (transfers_.line(transfer.line).first_unsent == index) start(transfers_.take_first_of(transfer.line));
}

void Traffic::start(std::uint32_t index) {
  if (index == none) return;
  if (transfers_[index].missing <= most_short) return shorts_.add(index);
  start_stream(index);
}

void Traffic::start_stream(std::uint32_t index) {
  bus_.tell(index);
  OpenTransfer& transfer = transfers_[index];
  if (transfer.told_packets == transfer.reached) {
    if (transfer.stream != none) streams_.pause(transfer.stream);
    return;
  }
  const std::uint64_t frame_ps = frames_.transmission_ps(frames_.payload_max(), transfer.journey.loops());
  const std::uint32_t stop =
      transfer.by_bus ? std::min(transfer.told_packets, transfer.reached + packets_in_piece) : transfer.missing;
  const std::uint64_t stop_ps = stop == transfer.missing ? Streams::all : stop * frame_ps;
  if (transfer.stream != none) return streams_.go_on(transfer.stream, stop_ps);
  transfer.began_ps = engine_.now().ps;
  Course course;
  course.source = transfer.journey.source;
  course.target = transfer.journey.target;
  course.traffic_class = transfer.traffic_class;
  course.work_ps = transfer.missing == transfer.packets ? transfer.work_ps : transfer.missing * frame_ps;
  const std::uint64_t answers_ps = transfer.missing * transmission_time(fabric_.ack, fabric_.rate).ps;
  course.acknowledgements = static_cast<double>(answers_ps) / static_cast<double>(course.work_ps);
  if (losses_ != nullptr && losses_->asks_for_look()) schedule(losses_->next_look_ps(), EventKind::look, 0);
  const std::uint32_t stream = streams_.begin(course, std::min(stop_ps, course.work_ps));
  transfers_[index].stream = stream;
  if (stream >= of_stream_.size()) of_stream_.resize(stream + std::size_t{1});
  of_stream_[stream] = index;
}

void Traffic::stream_due(std::uint32_t stream) {
  const std::uint32_t index = of_stream_[stream];
  OpenTransfer& transfer = transfers_[index];
  transfer.reached = transfer.by_bus
                         ? std::min({transfer.missing, transfer.told_packets, transfer.reached + packets_in_piece})
                         : transfer.missing;
  if (transfer.reached < transfer.missing) {
    // What has left is at the target a flight later, which is short beside the time of a piece.
    const Bytes there{std::uint64_t{transfer.reached} * frames_.payload_max().count};
    if (transfer.missing == transfer.packets && there > transfer.took) {
      bus_.bus()->took(transfer.journey.target, transfer.target_memory, there - transfer.took, engine_.now());
      transfer.took = there;
    }
    return start_stream(index);
  }
  lay(index);
  std::uint64_t wait_ps = 0;
  if (!transfer.journey.loops()) {
    for (std::size_t hop = 1; hop < ports_.size(); ++hop)
      wait_ps += pipes_.wait_ps(pipes_.of_port(ports_[hop]), transfer.traffic_class, 1);
  }
  streams_.end(stream);
  transfer.stream = none;
  transfer.told_packets = transfer.reached = 0;
  sent(index, transfer.began_ps, engine_.now().ps + ways_.out_ps(transfer.journey) + wait_ps);
}

void Traffic::lay(std::uint32_t index) {
  OpenTransfer& transfer = transfers_[index];
  ports_.clear();
  if (transfer.journey.loops()) return;
  if (transfer.line != none) {
    Line& line = transfers_.line(transfer.line);
    if (line.under_way > 0) {
      transfer.journey.path = line.journey.path;
      transfer.journey.way = line.journey.way;
      transfer.journey.laid = line.journey.laid;
    }
    ways_.lay(transfer.journey);
    line.journey = transfer.journey;
  } else {
    transfer.journey.laid = false;
    ways_.lay(transfer.journey);
  }
  ways_.ports_of(transfer.journey, ports_);
}

void Traffic::departs(std::uint32_t index) {
  lay(index);
  OpenTransfer& transfer = transfers_[index];
  const std::uint64_t frame_ps = frames_.transmission_ps(frames_.payload_max(), transfer.journey.loops());
  std::uint64_t work_ps = transfer.missing == transfer.packets ? transfer.work_ps : transfer.missing * frame_ps;
  transfer.in_window = transfer.missing;
  transfer.began_ps = engine_.now().ps;
  if (losses_ != nullptr) work_ps += losses_->delay_ps(ports_, engine_.now().ps, work_ps, transfer.missing);
  std::uint64_t wait_ps = pipes_.pass(pipes_.egress(transfer.journey.source), transfer.traffic_class, work_ps);
  const std::uint64_t start_ps = engine_.now().ps + wait_ps;
  for (std::size_t hop = 1; hop + 1 < ports_.size(); ++hop) {
    wait_ps += pipes_.pass(pipes_.of_port(ports_[hop]), transfer.traffic_class, work_ps);
  }
  const std::uint32_t last = pipes_.ingress(transfer.journey.target);
  if (!transfer.reserved) wait_ps += pipes_.pass(last, transfer.traffic_class, work_ps);
  transfer.reserved = false;
  sent(index, start_ps, engine_.now().ps + work_ps + ways_.out_ps(transfer.journey) + wait_ps);
}

void Traffic::sent(std::uint32_t index, std::uint64_t from_ps, std::uint64_t deliver_ps) {
  OpenTransfer& transfer = transfers_[index];
  if (transfer.line != none) {
    Line& line = transfers_.line(transfer.line);
    ++line.under_way;
    deliver_ps = std::max(deliver_ps, line.last_delivered_ps + 1);
    line.last_delivered_ps = deliver_ps;
    line.sent = std::max(line.sent, transfer.sequence + 1);
  }
  const std::uint32_t lost = losses_ == nullptr ? 0 : lost_of(index, from_ps, engine_.now().ps);
  if (lost > 0) {
    wait_for_timeout(index, lost);
  } else {
    schedule(deliver_ps, EventKind::delivered, index);
  }
  next_of_line(index);
}

// What has to be sent again goes first.
void Traffic::next_of_line(std::uint32_t index) {
  const std::uint32_t number = transfers_[index].line;
  if (number == none) return;
  transfers_.leave_line(index);
  if (transfers_.line(number).waiting.empty()) start(transfers_.take_first_of(number));
}

// --- at the target ------------------------------------------------------------------------------------------------

void Traffic::deliver(std::uint32_t index) {
  OpenTransfer& transfer = transfers_[index];
  if (transfer.line != none && !transfer.delivered) {
    Line& line = transfers_.line(transfer.line);
    if (transfer.sequence < line.expected) return give_up(index);  // its line was given up while it was on its way
    if (transfer.sequence != line.expected) {
      count_refused(transfer.missing, totals_.faults, accounts_[transfer.journey.source]);
      line.waiting[transfer.sequence] = index;
      if (!line.armed) send_again(index);
      return;
    }
    ++line.expected;
  }
  if (observer_ != nullptr) show(transfer);
  const std::uint64_t answer_ps = transmission_time(fabric_.ack, fabric_.rate).ps;
  if (!transfer.journey.loops() && transfer.in_window > 0) {
    const std::uint64_t answers_ps = answer_ps * transfer.in_window;
    pipes_.pass(pipes_.egress(transfer.journey.target), transfer.traffic_class, answers_ps);
    pipes_.pass(pipes_.ingress(transfer.journey.source), transfer.traffic_class, answers_ps);
  }
  if (losses_ != nullptr && answer_is_lost(index)) {
    transfer.answer_lost = true;
    wait_for_timeout(index, transfer.packets);
  } else {
    schedule(engine_.now().ps + answer_ps + ways_.home_ps(transfer.journey), EventKind::acknowledged, index);
  }
  if (transfer.delivered) return;
  transfer.delivered = true;
  const std::uint32_t handle = transfer.handle;
  const std::uint32_t hops = transfer.journey.loops() ? 0 : transfer.journey.path.switch_hops;
  totals_.pieces += transfer.packets;
  if (!transfer.journey.loops()) totals_.piece_hops += std::uint64_t{transfer.packets} * (hops + 2U);
  totals_.payload_bytes += transfer.size.count;
  totals_.pieces_of[transfer.traffic_class] += transfer.packets;
  totals_.bytes_of[transfer.traffic_class] += transfer.size.count;
  if (transfer.by_bus) {
    bus_.bus()->took(transfer.journey.target, transfer.target_memory, transfer.size - transfer.took, engine_.now());
  }
  sink_->delivered(handle, hops);
}

// Its packets, one behind the other at an even pace, all on the way of the last.
void Traffic::show(const OpenTransfer& transfer) {
  if (transfer.journey.loops()) return;
  ways_.ports_of(transfer.journey, ports_);
  const std::uint64_t way_ps = ways_.out_ps(transfer.journey);
  const std::uint64_t end_ps = engine_.now().ps - std::min(engine_.now().ps, way_ps);
  const std::uint64_t from_ps = std::min(transfer.began_ps, end_ps);
  for (std::uint32_t n = 0; n < transfer.packets; ++n) {
    const std::uint64_t sent = std::uint64_t{n} * frames_.payload_max().count;
    const Bytes payload = std::min(frames_.payload_max(), Bytes{transfer.size.count - sent});
    CarriedPiece piece;
    piece.piece = n;
    piece.bytes = static_cast<std::uint32_t>(frames_.frame_of(payload).count);
    std::uint64_t at_ps = from_ps + (end_ps - from_ps) / transfer.packets * n;
    for (const std::uint32_t port : ports_) {
      piece.port = port;
      piece.to_nic = port == ports_.back();
      piece.start_ps = at_ps;
      piece.end_ps = at_ps + frames_.transmission_ps(payload, false);
      at_ps += wiring_.flight_ps(port) + fabric_.switch_latency.ps;
      piece.now_ps = engine_.now().ps;
      observer_->carried(piece);
    }
  }
}

void Traffic::acknowledge(std::uint32_t index) {
  OpenTransfer& transfer = transfers_[index];
  const std::uint32_t handle = transfer.handle;
  const OpenTransfer ended = transfer;
  if (transfer.line != none) --transfers_.line(transfer.line).under_way;
  transfers_.close(index);
  if (ended.in_window > 0) shorts_.leave_window(ended.journey.source, ended.traffic_class, ended.in_window);
  sink_->acknowledged(handle);
}

NetworkTotals Traffic::totals() const {
  NetworkTotals totals = totals_;
  if (losses_ != nullptr) totals.faults.link_replays = losses_->faults().replays();
  return totals;
}

// --- with faults --------------------------------------------------------------------------------------------------

void Traffic::end_faults() {
  if (losses_ == nullptr) return;
  losses_->end(pipes_);
  streams_.expect_solving();
}

// Of the packets that have left between these instants. An ordered transfer has one way, and all behind the first that
// is lost is refused.
std::uint32_t Traffic::lost_of(std::uint32_t index, std::uint64_t from_ps, std::uint64_t to_ps) {
  OpenTransfer& transfer = transfers_[index];
  if (transfer.journey.loops()) return 0;
  if (transfer.missing <= most_short) {
    const bool lost = losses_->lose(ports_, from_ps, transfer.work_ps, transfer.missing);
    return lost ? transfer.missing : 0;
  }
  const std::uint32_t parts = std::min(slices, transfer.missing);
  const std::uint64_t slice_ps = (to_ps - from_ps) / parts;
  std::uint32_t lost = 0;
  for (std::uint32_t part = 0; part < parts; ++part) {
    const std::uint32_t packets = transfer.missing / parts + (part < transfer.missing % parts ? 1 : 0);
    Journey journey = transfer.journey;
    if (transfer.line == none && part + 1 < parts) {
      journey.draw = static_cast<std::uint32_t>(mix(std::uint64_t{journey.draw} << 8 | part) >> 32);
      journey.laid = false;
      ways_.lay(journey);
      ways_.ports_of(journey, ports_);
    } else {
      ways_.ports_of(transfer.journey, ports_);
    }
    const std::uint64_t at_ps = from_ps + part * slice_ps;
    static_cast<void>(
        losses_->delay_ps(ports_, at_ps, packets * frames_.transmission_ps(frames_.payload_max(), false), packets));
    if (transfer.line != none && lost > 0) {
      lost += packets;
      count_refused(packets, totals_.faults, accounts_[transfer.journey.source]);
    } else if (losses_->lose(ports_, at_ps, slice_ps, packets)) {
      lost += packets;
      totals_.faults.pieces_lost += packets;
    }
  }
  return lost;
}

bool Traffic::answer_is_lost(std::uint32_t index) {
  const OpenTransfer& transfer = transfers_[index];
  if (transfer.journey.loops()) return false;
  ways_.ports_of(transfer.journey, ports_);
  std::reverse(ports_.begin(), ports_.end());
  for (std::uint32_t& port : ports_) port = wiring_.peer(port);
  return losses_->lose(ports_, engine_.now().ps, transmission_time(fabric_.ack, fabric_.rate).ps, transfer.packets);
}

// Of an ordered flow the first that was lost has the timer.
void Traffic::wait_for_timeout(std::uint32_t index, std::uint32_t packets) {
  OpenTransfer& transfer = transfers_[index];
  if (transfer.missing <= most_short || transfer.answer_lost) totals_.faults.pieces_lost += packets;
  transfer.missing = packets;
  if (transfer.line != none && !transfer.answer_lost) {
    Line& line = transfers_.line(transfer.line);
    line.waiting[transfer.sequence] = index;
    if (std::exchange(line.armed, true)) return;
  }
  schedule(std::max(engine_.now().ps, transfer.began_ps + retry_.timeout_ps), EventKind::retry_due, index);
}

void Traffic::retry(std::uint32_t index) {
  OpenTransfer& transfer = transfers_[index];
  if (!std::exchange(transfer.delayed, false)) {
    const bool ordered = transfer.line != none;
    const std::uint32_t counted = ordered ? 1 : transfer.missing;
    totals_.faults.network_timeouts += counted;
    NicTimeouts& of_nic = accounts_[transfer.journey.source].timeouts;
    (ordered ? of_nic.ordered : of_nic.unordered) += counted;
    leave_window(transfer);
    if (transfer.timeouts == retry_.delays_ps.size()) return give_up(index);
    const std::uint64_t delay_ps = retry_.delays_ps[transfer.timeouts++];
    if (delay_ps > 0) {
      transfer.delayed = true;
      return schedule(engine_.now().ps + delay_ps, EventKind::retry_due, index);
    }
  }
  send_again(index);
}

void Traffic::leave_window(OpenTransfer& transfer) {
  const std::uint32_t packets = std::exchange(transfer.in_window, 0);
  if (packets > 0) shorts_.leave_window(transfer.journey.source, transfer.traffic_class, packets);
}

// Of a line all that waits, in order: each begins when the one before has left, as anything in a line does. The window
// is left only then, or what leaves the NIC for it would be before them.
void Traffic::send_again(std::uint32_t index) {
  OpenTransfer& first = transfers_[index];
  if (first.line == none || first.answer_lost) {
    count_sent_again(first.missing, totals_.faults, accounts_[first.journey.source]);
    first.answer_lost = false;
    first.journey.draw = static_cast<std::uint32_t>(mix(first.journey.draw) >> 32);
    if (first.line != none) --transfers_.line(first.line).under_way;
    return start(index);
  }
  const std::uint32_t number = first.line;
  Line& line = transfers_.line(number);
  line.armed = false;
  line.journey.laid = false;
  std::uint32_t in_window = 0;
  for (const auto& [sequence, other] : std::exchange(line.waiting, {})) {
    OpenTransfer& transfer = transfers_[other];
    count_sent_again(transfer.missing, totals_.faults, accounts_[transfer.journey.source]);
    in_window += std::exchange(transfer.in_window, 0);
    transfer.journey.draw = static_cast<std::uint32_t>(mix(transfer.journey.draw) >> 32);
    --line.under_way;
    transfers_.put_back_in_line(other);
  }
  if (in_window > 0) shorts_.leave_window(first.journey.source, first.traffic_class, in_window);
  start(transfers_.take_first_of(number));
}

// With it go all of its line that wait; the submitters are told last: they may submit anew.
void Traffic::give_up(std::uint32_t index) {
  struct Notice {
    std::uint32_t handle = 0;
    bool delivered = false;
  };
  std::vector<std::uint32_t> gone;
  const OpenTransfer& first = transfers_[index];
  NicAccount& account = accounts_[first.journey.source];
  const std::uint32_t number = first.line;
  const bool alone = first.line == none || first.answer_lost || first.sequence < transfers_.line(first.line).expected;
  if (alone) {
    gone.push_back(index);
    if (number != none) --transfers_.line(number).under_way;
  } else {
    Line& line = transfers_.line(number);
    for (const auto& [sequence, other] : line.waiting) gone.push_back(other);
    line.waiting.clear();
    line.armed = false;
    line.journey.laid = false;
    line.expected = line.sent;
    line.under_way -= static_cast<std::uint32_t>(gone.size());
  }
  if (number != none && (!alone || first.answer_lost)) ++account.flows_given_up;
  const bool goes_on = !alone && transfers_.line(number).first_unsent != none;
  std::vector<Notice> notices;
  for (const std::uint32_t other : gone) {
    leave_window(transfers_[other]);
    (number != none ? account.ordered_given_up : account.unordered_given_up) += transfers_[other].missing;
    notices.push_back({transfers_[other].handle, transfers_[other].delivered});
    transfers_.close(other);
  }
  totals_.faults.transfers_failed += notices.size();
  if (goes_on) start(transfers_.take_first_of(number));
  for (const Notice& notice : notices) sink_->failed(notice.handle, notice.delivered);
}

}  // namespace dryfly::flow
