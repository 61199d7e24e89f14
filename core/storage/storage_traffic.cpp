#include "core/storage/storage_traffic.hpp"

#include <algorithm>
#include <utility>

#include "core/unit/random.hpp"

namespace dryfly::storage {

StorageTraffic::StorageTraffic(Engine& engine, Carrier& network, Plan plan, const Framing& framing)
    : engine_(engine),
      plan_(std::move(plan)),
      shared_(engine, network),
      own_(shared_.open_share()),
      job_(shared_.open_share()),
      framing_(framing),
      totals_(plan_.streams.size()) {
  engine.attach(ComponentClass::background, *this);
  own_.connect(*this);
  for (const NicId nic : plan_.servers) servers_.push_back({.nic = nic, .busy_until = {}});
  for (std::uint32_t stream = 0; stream < plan_.streams.size(); ++stream) {
    for (const NicId nic : plan_.streams[stream].clients) clients_.push_back({.stream = stream, .nic = nic});
  }
}

void StorageTraffic::start(Instant at) {
  start_ = at;
  for (std::uint32_t index = 0; index < clients_.size(); ++index) {
    Client& client = clients_[index];
    const Stream& stream = plan_.streams[client.stream];
    const Duration distance = transmission_time(stream.transfer, stream.rate);
    const RandomStream random{plan_.seed, index, Purpose::workload};
    client.due = at + stream.from + Duration{random.draw(0) % std::max<std::uint64_t>(1, distance.ps)};
    schedule(client.due, Kind::begin, index);
  }
}

void StorageTraffic::handle(Event event) {
  const auto index = static_cast<std::uint32_t>(event.key);
  const auto kind = static_cast<Kind>((event.key >> kind_shift) & 0xf);
  kind == Kind::begin ? begin(index) : serve(index);
}

// The last one takes what is left of the amount.
Bytes StorageTraffic::next_size(const Client& client) const {
  const Stream& stream = plan_.streams[client.stream];
  if (stream.amount.count == 0) return stream.transfer;
  const std::uint64_t begun = client.begun * stream.transfer.count;
  return std::min(stream.transfer, Bytes{stream.amount.count - std::min(begun, stream.amount.count)});
}

void StorageTraffic::begin(std::uint32_t index) {
  Client& client = clients_[index];
  const Stream& stream = plan_.streams[client.stream];
  const Bytes size = next_size(client);
  if (stopped_ || size.count == 0 || engine_.now() >= start_ + stream.until) return;
  if (client.in_flight == plan_.in_flight) {
    client.waits = true;
    return;
  }
  const std::uint32_t number = take_exchange();
  Exchange& exchange = exchanges_[number];
  const RandomStream random{plan_.seed, index, Purpose::workload};
  exchange.client = index;
  exchange.server = random.below(++client.begun, static_cast<std::uint32_t>(servers_.size()));
  exchange.size = size;
  exchange.begun = engine_.now();
  ++client.in_flight;
  submit(number, Step::request);
  client.due = client.due + transmission_time(stream.transfer, stream.rate);
  schedule(std::max(client.due, engine_.now()), Kind::begin, index);
  if (job_.stops_engine_when_idle()) engine_.lower_limit(Instant{engine_.now().ps + 1});
}

void StorageTraffic::requested(std::uint32_t number) {
  const Exchange& exchange = exchanges_[number];
  Server& server = servers_[exchange.server];
  const Instant turn = std::max(engine_.now(), server.busy_until);
  server.busy_until = turn + transmission_time(exchange.size, plan_.server_rate);
  schedule(turn + plan_.server_latency, Kind::serve, number);
}

void StorageTraffic::serve(std::uint32_t number) {
  const Direction direction = plan_.streams[clients_[exchanges_[number].client].stream].direction;
  submit(number, direction == Direction::read ? Step::data : Step::get);
}

void StorageTraffic::submit(std::uint32_t number, Step step) {
  Exchange& exchange = exchanges_[number];
  const Client& client = clients_[exchange.client];
  const Stream& stream = plan_.streams[client.stream];
  const NicId server = servers_[exchange.server].nic;
  const bool reads = stream.direction == Direction::read;
  const bool from_client = step == Step::request || (step == Step::data && !reads);
  Transfer transfer;
  transfer.source = from_client ? client.nic : server;
  transfer.target = from_client ? server : client.nic;
  transfer.size = plan_.request;
  if (step == Step::data) transfer.size = exchange.size;
  if (step == Step::get) transfer.size = Bytes{0};
  transfer.traffic_class = stream.traffic_class;
  // Of a Get neither the request nor the answer is ordered.
  transfer.ordered = step == Step::request || step == Step::reply || (step == Step::data && reads);
  transfer.handle = number << step_bits | static_cast<std::uint32_t>(step);
  ++exchange.open;
  NicCounters& source = counters_.try_emplace(transfer.source, NicCounters{.nic = transfer.source}).first->second;
  NicCounters& target = counters_.try_emplace(transfer.target, NicCounters{.nic = transfer.target}).first->second;
  count_transfer(source, target, transfer, step == Step::data && !reads, framing_);
  own_.submit(transfer);
}

void StorageTraffic::delivered(std::uint32_t handle, std::uint32_t) {
  const std::uint32_t number = handle >> step_bits;
  const bool reads = plan_.streams[clients_[exchanges_[number].client].stream].direction == Direction::read;
  switch (static_cast<Step>(handle & ((1U << step_bits) - 1))) {
    case Step::request:
      return requested(number);
    case Step::get:
      return submit(number, Step::data);
    case Step::data:
      return reads ? void() : submit(number, Step::reply);
    case Step::reply:
      return end(number, true);
  }
}

// A server that puts knows by the acknowledgement that the data is there.
void StorageTraffic::acknowledged(std::uint32_t handle) {
  const std::uint32_t number = handle >> step_bits;
  const auto step = static_cast<Step>(handle & ((1U << step_bits) - 1));
  const bool reads = plan_.streams[clients_[exchanges_[number].client].stream].direction == Direction::read;
  if (step == Step::data && reads) submit(number, Step::reply);
  let_go(number);
}

void StorageTraffic::failed(std::uint32_t handle, bool delivered) {
  const std::uint32_t number = handle >> step_bits;
  const auto step = static_cast<Step>(handle & ((1U << step_bits) - 1));
  const bool reads = plan_.streams[clients_[exchanges_[number].client].stream].direction == Direction::read;
  const bool goes_on = delivered && !(step == Step::data && reads);
  if (!goes_on) end(number, false);
  let_go(number);
}

void StorageTraffic::end(std::uint32_t number, bool well) {
  Exchange& exchange = exchanges_[number];
  if (std::exchange(exchange.ended, true)) return;
  Client& client = clients_[exchange.client];
  StreamTotals& totals = totals_[client.stream];
  if (!stopped_ && well) {
    const Duration latency = engine_.now() - exchange.begun;
    ++totals.exchanges;
    totals.bytes += exchange.size.count;
    totals.latency_sum = totals.latency_sum + latency;
    totals.latency_max = std::max(totals.latency_max, latency);
  }
  if (!stopped_ && !well) ++totals.failed;
  --client.in_flight;
  if (std::exchange(client.waits, false)) schedule(engine_.now(), Kind::begin, exchange.client);
}

// Its number may be given anew when nothing can come back for it.
void StorageTraffic::let_go(std::uint32_t number) {
  Exchange& exchange = exchanges_[number];
  if (--exchange.open == 0 && exchange.ended) free_.push_back(number);
}

std::uint32_t StorageTraffic::take_exchange() {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(exchanges_.size()));
    exchanges_.emplace_back();
    DRYFLY_CHECK(exchanges_.size() < std::size_t{1} << (32 - step_bits));
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  exchanges_[number] = {};
  return number;
}

void StorageTraffic::schedule(Instant at, Kind kind, std::uint32_t index) {
  constexpr auto component = static_cast<std::uint64_t>(ComponentClass::background) << component_class_shift;
  engine_.schedule(at, component | static_cast<std::uint64_t>(kind) << kind_shift | index);
}

}  // namespace dryfly::storage
