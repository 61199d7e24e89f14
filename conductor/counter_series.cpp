#include "conductor/counter_series.hpp"

#include <fstream>
#include <set>

#include "conductor/link_ends.hpp"
#include "core/record/json_writer.hpp"

namespace dryfly {
namespace {

// Keys are ordered by NIC and counter; those of links follow.
constexpr unsigned of_shift = 16;
constexpr std::uint64_t link_key = std::uint64_t{1} << 63;
constexpr std::uint64_t key_of(std::uint32_t of, std::size_t what) { return std::uint64_t{of} << of_shift | what; }
static_assert(counter_count + 2 < std::size_t{1} << of_shift);

}  // namespace

CounterSeries::CounterSeries(const CounterSources& sources, Instant start)
    : sources_(sources),
      frames_(&frame_place, static_cast<std::uint32_t>(sources.framing().acknowledgement.count)),
      record_(start) {
  sources_.start(start);
}

// Some counters grow while nothing happens, so each idle step is looked at too.
void CounterSeries::close_step(Instant next) {
  record_.make_room(next);
  while (record_.step_end() <= next) record_.close_step(grown(record_.step_end()));
}

void CounterSeries::finish(Instant end) { record_.add(grown(end)); }

std::vector<StepRecord::Growth> CounterSeries::grown(Instant now) {
  std::vector<StepRecord::Growth> all;
  for (NicCounters& counters : sources_.read(now)) {
    put_frames(counters);
    for (std::size_t counter = 0; counter < counter_count; ++counter) {
      if (counters.values[counter] != 0) note(all, key_of(counters.nic.value, counter), counters.values[counter]);
    }
  }
  for (const auto& [port, frames] : frames_.links()) {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : frames.by_size) sum += count;
    note(all, link_key | key_of(port, counter_count), sum);
    note(all, link_key | key_of(port, counter_count + 1), frames.bytes);
  }
  return all;
}

void CounterSeries::note(std::vector<StepRecord::Growth>& all, std::uint64_t key, std::uint64_t value) {
  std::uint64_t& before = before_[key];
  if (value <= before) return;
  all.push_back({key, value - before});
  before = value;
}

void CounterSeries::put_frames(NicCounters& counters) const {
  static_assert(FrameRecord::places == static_cast<std::size_t>(Counter::hni_rx_ok));
  const FrameRecord::Frames none;
  const auto of = [&](std::uint32_t port) -> const FrameRecord::Frames& {
    const auto found = frames_.links().find(port);
    return found == frames_.links().end() ? none : found->second;
  };
  const auto put = [&](Counter counter, std::size_t place, std::uint64_t value) {
    counters.values[static_cast<std::size_t>(counter) + place] = value;
  };
  const FrameRecord::Frames& out = of(sources_.port_of(counters.nic));
  const FrameRecord::Frames& in = of(sources_.port_to(counters.nic));
  for (std::size_t place = 0; place < FrameRecord::places; ++place) {
    put(Counter::hni_tx_ok, place, out.by_size[place]);
    put(Counter::hni_rx_ok, place, in.by_size[place]);
  }
  put(Counter::hni_sts_tx_ok_octets, 0, out.bytes);
  put(Counter::hni_sts_rx_ok_octets, 0, in.bytes);
}

bool CounterSeries::write(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  for (std::uint32_t step = 0; step < record_.steps().size(); ++step) {
    for (const StepRecord::Growth& growth : record_.steps()[step]) {
      const std::uint64_t key = growth.key & ~link_key;
      const CounterStep row{.step = step,
                            .of = static_cast<std::uint32_t>(key >> of_shift),
                            .what = static_cast<std::uint32_t>(key & ((1U << of_shift) - 1)),
                            .grown = growth.by};
      file.write(reinterpret_cast<const char*>(&row), sizeof row);
    }
  }
  file.flush();
  return static_cast<bool>(file);
}

void CounterSeries::describe(JsonWriter& json, const Dragonfly& topology) const {
  json.member("counter_step_ps", record_.step_ps());
  json.key("counters");
  json.begin_array();
  for (std::size_t counter = 0; counter < counter_count; ++counter) json.value(counter_name(counter));
  json.end_array();
  std::set<std::uint32_t> nics;
  for (const auto& [key, value] : before_) {
    if ((key & link_key) == 0) nics.insert(static_cast<std::uint32_t>(key >> of_shift));
  }
  json.key("nics");
  json.begin_array();
  for (const std::uint32_t nic : nics) {
    json.begin_object();
    json.member("nic", nic);
    json.member("node", topology.node_of(NicId{nic}).value);
    json.member("index", topology.index_in_node(NicId{nic}));
    json.end_object();
  }
  json.end_array();
  describe_ports(json, topology);
}

// Those of switches, by the links that they drive and hear.
void CounterSeries::describe_ports(JsonWriter& json, const Dragonfly& topology) const {
  std::set<std::uint32_t> ports;
  for (const auto& [port, frames] : frames_.links()) {
    for (const std::uint32_t end : {port, port_opposite(topology, port)}) {
      if (end < topology.port_count()) ports.insert(end);
    }
  }
  json.key("ports");
  json.begin_array();
  for (const std::uint32_t port : ports) {
    json.begin_object();
    json.member("drives", port);
    json.member("hears", port_opposite(topology, port));
    json.member("index", index_at_switch(topology, port));
    write_link_ends(json, topology, port);
    json.end_object();
  }
  json.end_array();
}

}  // namespace dryfly
