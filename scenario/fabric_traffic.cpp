// Drives the fabric alone with synthetic streams and prints what they got: fabric-traffic SPEC < STREAMS.
// scenario/run.py writes both from a scenario file. A stream is one line:
//
//   NAME FIRST COUNT STRIDE TARGET CLASS ORDER BYTES PACE
//
// Sources are COUNT NICs from FIRST on, STRIDE apart. TARGET: `uniform` (any other NIC at random), `shift:N` (N NICs
// further on), `fixed:N`, `exchange:N` (the source whose place among the sources differs in bit N). CLASS: a number of
// core/contract/network.hpp. ORDER: ordered or unordered. PACE: `load:PPM` of a link of 25 GB/s, at random instants, or
// `depth:N` messages under way all the time. The first line is `time WARM_UP_PS END_PS`: messages delivered between
// the two count. For each stream: GB/s of payload per source, messages, and their latency in ns. Streams to and from
// storage groups are lines of the spec; of them it prints GB/s over all, from the start to the end, operations, and the
// mean latency of one. A line `trackers`: of the trackers of all NICs also what they have held up, to the end, and the
// most in use.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/machine/machine.hpp"
#include "core/network/packet/packet_network.hpp"
#include "core/spec/fields.hpp"
#include "core/storage/storage_traffic.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/random.hpp"

namespace dryfly {
namespace {

struct Stream {
  std::string name;
  std::string target;
  std::uint32_t first = 0, count = 0, stride = 0, parameter = 0, traffic_class = 0;
  bool ordered = false;
  std::uint64_t bytes = 0;
  std::uint64_t load_ppm = 0;  // 0: by depth
  std::uint32_t depth = 0;
  std::uint64_t delivered_bytes = 0;
  std::vector<std::uint64_t> latency_ps;
};

std::pair<std::string, std::uint64_t> named_number(const std::string& text) {
  const auto colon = text.find(':');
  return {text.substr(0, colon), colon == std::string::npos ? 0 : std::stoull(text.substr(colon + 1))};
}

Stream parse(const std::string& line) {
  Stream stream;
  std::string order, pace;
  std::istringstream words{line};
  words >> stream.name >> stream.first >> stream.count >> stream.stride >> stream.target >> stream.traffic_class >>
      order >> stream.bytes >> pace;
  if (!words) throw SpecError("stream `" + line + "`: nine words are wanted");
  stream.ordered = order == "ordered";
  const auto [target, parameter] = named_number(stream.target);
  stream.target = target;
  stream.parameter = static_cast<std::uint32_t>(parameter);
  const auto [kind, amount] = named_number(pace);
  if (kind == "load") stream.load_ppm = amount;
  if (kind == "depth") stream.depth = static_cast<std::uint32_t>(amount);
  if (stream.load_ppm + stream.depth == 0) throw SpecError("stream `" + line + "`: no load and no depth");
  return stream;
}

class Traffic final : public Handler, public TransferSink {
 public:
  Traffic(Engine& engine, const Dragonfly& dragonfly, Carrier& network, std::vector<Stream> streams,
          std::uint64_t warm_up_ps, std::uint64_t end_ps, std::uint64_t seed)
      : engine_(engine),
        network_(network),
        nics_(dragonfly.nic_count()),
        streams_(std::move(streams)),
        warm_up_ps_(warm_up_ps),
        end_ps_(end_ps),
        random_(seed, 0, Purpose::workload) {
    engine.attach(ComponentClass::workload, *this);
    network.connect(*this);
    for (std::uint32_t stream = 0; stream < streams_.size(); ++stream) {
      for (std::uint32_t place = 0; place < streams_[stream].count; ++place) {
        // Spread over a microsecond, so that nothing begins in step.
        for (std::uint32_t i = 0; i < std::max(1U, streams_[stream].depth); ++i) {
          schedule(stream, place, random_.below(draws_++, 1'000'000));
        }
      }
    }
  }

  void handle(Event event) override {
    const auto place = static_cast<std::uint32_t>(event.key & 0xffffff);
    const auto number = static_cast<std::uint32_t>((event.key >> 24) & 0xff);
    Stream& stream = streams_[number];
    const std::uint64_t now_ps = engine_.now().ps;
    Transfer transfer;
    transfer.source = {stream.first + place * stream.stride};
    transfer.target = {target_of(stream, place)};
    transfer.size = {stream.bytes};
    transfer.ordered = stream.ordered;
    transfer.traffic_class = static_cast<TrafficClass>(stream.traffic_class);
    transfer.handle = take_message({number, place, now_ps});
    network_.submit(transfer);
    if (stream.load_ppm != 0) schedule(number, place, now_ps + 1 + random_.below(draws_++, distance_ps(stream)));
  }
  void delivered(std::uint32_t handle, std::uint32_t) override {
    const Message& message = messages_[handle];
    Stream& stream = streams_[message.stream];
    const std::uint64_t now_ps = engine_.now().ps;
    if (now_ps < warm_up_ps_ || now_ps >= end_ps_) return;
    stream.delivered_bytes += stream.bytes;
    stream.latency_ps.push_back(now_ps - message.at_ps);
  }
  void acknowledged(std::uint32_t handle) override {
    const Message message = messages_[handle];
    free_.push_back(handle);
    if (streams_[message.stream].depth != 0) schedule(message.stream, message.place, engine_.now().ps);
  }

  void print() {
    const double seconds = static_cast<double>(end_ps_ - warm_up_ps_) / 1e12;
    for (Stream& stream : streams_) {
      std::sort(stream.latency_ps.begin(), stream.latency_ps.end());
      const auto line = [&](const char* what, double value) {
        std::printf("%s.%s %.3f\n", stream.name.c_str(), what, value);
      };
      line("gbps", static_cast<double>(stream.delivered_bytes) / seconds / 1e9 / stream.count);
      line("messages", static_cast<double>(stream.latency_ps.size()));
      line("p50_ns", percentile_ns(stream, 50));
      line("p99_ns", percentile_ns(stream, 99));
    }
  }

 private:
  struct Message {
    std::uint32_t stream = 0;
    std::uint32_t place = 0;
    std::uint64_t at_ps = 0;
  };

  static double percentile_ns(const Stream& stream, std::size_t percent) {
    if (stream.latency_ps.empty()) return 0;
    return static_cast<double>(stream.latency_ps[(stream.latency_ps.size() - 1) * percent / 100]) / 1e3;
  }
  // Twice the mean distance of messages at that load.
  static std::uint32_t distance_ps(const Stream& stream) {
    return static_cast<std::uint32_t>(2 * stream.bytes * 40 * 1'000'000 / stream.load_ppm);
  }
  std::uint32_t target_of(const Stream& stream, std::uint32_t place) {
    const std::uint32_t source = stream.first + place * stream.stride;
    if (stream.target == "shift") return (source + stream.parameter) % nics_;
    if (stream.target == "fixed") return stream.parameter;
    if (stream.target == "exchange") return stream.first + (place ^ (1U << stream.parameter)) * stream.stride;
    if (stream.target != "uniform") throw SpecError("target `" + stream.target + "` of a stream is unknown");
    const std::uint32_t target = random_.below(draws_++, nics_ - 1);
    return target + (target >= source ? 1 : 0);
  }
  std::uint32_t take_message(const Message& message) {
    if (free_.empty()) {
      messages_.emplace_back();
      free_.push_back(static_cast<std::uint32_t>(messages_.size() - 1));
    }
    const std::uint32_t handle = free_.back();
    free_.pop_back();
    messages_[handle] = message;
    return handle;
  }
  void schedule(std::uint32_t stream, std::uint32_t place, std::uint64_t at_ps) {
    if (at_ps >= end_ps_) return;
    engine_.schedule(Instant{at_ps}, (static_cast<std::uint64_t>(ComponentClass::workload) << component_class_shift) |
                                         (std::uint64_t{stream} << 24) | place);
  }

  Engine& engine_;
  Carrier& network_;
  std::uint32_t nics_;
  std::vector<Stream> streams_;
  std::uint64_t warm_up_ps_;
  std::uint64_t end_ps_;
  RandomStream random_;
  std::uint64_t draws_ = 0;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_;
};

void print(const storage::StorageTraffic& traffic, std::uint64_t end_ps) {
  for (std::size_t number = 0; number < traffic.totals().size(); ++number) {
    const storage::StreamTotals& totals = traffic.totals()[number];
    const auto operations = static_cast<double>(totals.exchanges);
    const auto line = [&](const char* what, double value) { std::printf("storage%zu.%s %.3f\n", number, what, value); };
    line("gbps", static_cast<double>(totals.bytes) / (static_cast<double>(end_ps) / 1e12) / 1e9);
    line("operations", operations);
    line("mean_ns", operations > 0 ? static_cast<double>(totals.latency_sum.ps) / operations / 1e3 : 0.0);
  }
}

void print(const TrackerTotals& trackers) {
  const auto line = [&](const char* what, std::uint64_t value) {
    std::printf("trackers.%s %llu\n", what, static_cast<unsigned long long>(value));
  };
  line("waits", trackers.source_waits);
  line("target_refusals", trackers.target_refusals);
  line("result_refusals", trackers.result_refusals);
  line("pauses", trackers.pauses);
  line("sources_max", trackers.sources_max);
  line("targets_max", trackers.targets_max);
  line("results_max", trackers.results_max);
}

int run(const char* spec_path) {
  std::ifstream file{spec_path};
  std::stringstream text;
  text << file.rdbuf();
  const Spec spec = Spec::parse(text.str());
  Machine machine{spec};
  std::string word;
  std::uint64_t warm_up_ps = 0, end_ps = 0;
  std::cin >> word >> warm_up_ps >> end_ps;
  std::vector<Stream> streams;
  bool shows_trackers = false;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "trackers") {
      shows_trackers = true;
    } else if (!line.empty()) {
      streams.push_back(parse(line));
    }
  }
  if (machine.storage) machine.storage->start(Instant{0});
  Traffic traffic{
      machine.engine, machine.topology, machine.carrier(), streams, warm_up_ps, end_ps, spec.number(fields::run_seed)};
  machine.engine.run(Instant{end_ps});
  if (machine.storage) machine.storage->stop();
  machine.engine.run(never);
  // What was begun is finished and counted nowhere; nothing may be left.
  const Network& network = *machine.network;
  const auto* packets = dynamic_cast<const PacketNetwork*>(&network);
  DRYFLY_CHECK(network.at_rest() && (packets == nullptr || packets->credit_bytes_outstanding() == 0));
  traffic.print();
  if (shows_trackers) print(network.totals().trackers);
  if (machine.storage) print(*machine.storage, end_ps);
  return 0;
}

}  // namespace
}  // namespace dryfly

int main(int argc, char** argv) {
  try {
    if (argc == 2) return dryfly::run(argv[1]);
  } catch (const dryfly::SpecError& error) {
    std::fprintf(stderr, "fabric-traffic: %s\n", error.what());
    return 2;
  }
  std::fprintf(stderr, "usage: fabric-traffic SPEC < STREAMS\n");
  return 2;
}
