// The flow model beside the packet model, pattern by pattern: of each kind of traffic in a pattern the mean rate of its
// sources and the mean time from submission to delivery, in both models, and how far the flow model is from the other;
// and how much longer the packet model takes on this computer (CPU seconds of this one-threaded process).
//
//   flow-against-packet [WORD]...     only patterns whose names contain one of the words
//
// The last line is `figure VALUE %`, the median error of all rates and times.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/network/flow/flow_network.hpp"
#include "core/network/packet/packet_network.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/random.hpp"
#include "testing/sample_machine.hpp"

namespace dryfly {
namespace {

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;

struct Message {
  std::uint32_t target = 0;
  std::uint64_t bytes = 0;
  std::uint32_t kind = 0;
  TrafficClass traffic_class = TrafficClass::best_effort;
  bool ordered = false;
};

struct Pattern {
  std::string name;
  fabric::SampleMachine machine;
  std::vector<std::string> kinds;
  std::uint64_t window = 1;                                                    // messages of a source under way at once
  std::uint64_t count = 1;                                                     // of each source
  std::function<Message(std::uint32_t source, std::uint64_t number)> message;  // to itself: this one sends nothing
  std::uint64_t interval_ps = 0;  // the mean between two messages of a source; 0: the next when one is acknowledged
  bool with_faults = false;
};

struct Kind {
  double rate = 0;  // mean of the sources', bytes/s
  double time = 0;  // mean of the messages', s
  double p99 = 0;
};

struct Outcome {
  std::vector<Kind> kinds;
  double seconds = 0;
  FaultTotals faults;
};

// Runs a pattern on one network.
template <class One>
class Bench final : private Handler, private TransferSink {
 public:
  explicit Bench(const Pattern& pattern)
      : pattern_(pattern),
        spec_(pattern.machine.spec()),
        dragonfly_(spec_),
        network_(engine_, dragonfly_, spec_),
        sent_(dragonfly_.nic_count()),
        finish_ps_(dragonfly_.nic_count()),
        bytes_(dragonfly_.nic_count()),
        kind_(dragonfly_.nic_count()),
        times_(pattern.kinds.size()) {
    engine_.attach(ComponentClass::workload, *this);
    network_.connect(*this);
    if (pattern_.with_faults) network_.restart(Instant{0});
  }

  Outcome run() {
    const std::clock_t begin = std::clock();
    for (std::uint32_t nic = 0; nic < dragonfly_.nic_count(); ++nic) {
      const std::uint64_t first = pattern_.interval_ps == 0 ? pattern_.window : 1;
      for (std::uint64_t n = 0; n < first; ++n) schedule(nic, random_.within(nic * 64 + n, 1'000'000));
    }
    engine_.run(never);
    Outcome outcome;
    outcome.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    outcome.faults = network_.totals().faults;
    for (std::uint32_t kind = 0; kind < times_.size(); ++kind) outcome.kinds.push_back(of_kind(kind));
    return outcome;
  }

 private:
  struct Sent {
    std::uint32_t source = 0;
    std::uint32_t kind = 0;
    std::uint64_t bytes = 0;
    std::uint64_t at_ps = 0;
  };

  Kind of_kind(std::uint32_t kind) {
    Kind found;
    double sources = 0;
    for (std::uint32_t nic = 0; nic < bytes_.size(); ++nic) {
      if (bytes_[nic] == 0 || kind_[nic] != kind) continue;
      found.rate += static_cast<double>(bytes_[nic]) / (static_cast<double>(finish_ps_[nic]) * 1e-12);
      ++sources;
    }
    if (sources > 0) found.rate /= sources;
    std::vector<double>& times = times_[kind];
    std::sort(times.begin(), times.end());
    for (const double time : times) found.time += time / static_cast<double>(times.size());
    if (!times.empty()) found.p99 = times[times.size() * 99 / 100];
    return found;
  }

  void schedule(std::uint32_t nic, std::uint64_t in_ps) {
    engine_.schedule(engine_.now() + Duration{in_ps},
                     static_cast<std::uint64_t>(ComponentClass::workload) << component_class_shift | nic);
  }
  void handle(Event event) override {
    const auto nic = static_cast<std::uint32_t>(event.key);
    next(nic);
    if (pattern_.interval_ps != 0 && sent_[nic] < pattern_.count) {
      schedule(nic, 1 + random_.within(std::uint64_t{nic} << 32 | sent_[nic], 2 * pattern_.interval_ps));
    }
  }
  void next(std::uint32_t nic) {
    if (sent_[nic] == pattern_.count) return;
    const Message message = pattern_.message(nic, sent_[nic]++);
    if (message.target == nic) return;
    Transfer transfer;
    transfer.source = {nic};
    transfer.target = {message.target};
    transfer.size = {message.bytes};
    transfer.traffic_class = message.traffic_class;
    transfer.ordered = message.ordered;
    transfer.handle = static_cast<std::uint32_t>(messages_.size());
    messages_.push_back({nic, message.kind, message.bytes, engine_.now().ps});
    network_.submit(transfer);
  }
  void delivered(std::uint32_t handle, std::uint32_t /*hops*/) override {
    const Sent& sent = messages_[handle];
    times_[sent.kind].push_back(static_cast<double>(engine_.now().ps - sent.at_ps) * 1e-12);
    bytes_[sent.source] += sent.bytes;
    kind_[sent.source] = sent.kind;
    finish_ps_[sent.source] = engine_.now().ps;
  }
  void acknowledged(std::uint32_t handle) override {
    const std::uint32_t source = messages_[handle].source;
    if (pattern_.interval_ps == 0) next(source);
  }
  void failed(std::uint32_t handle, bool /*delivered*/) override { acknowledged(handle); }

  const Pattern& pattern_;
  Spec spec_;
  Engine engine_;
  Dragonfly dragonfly_;
  One network_;
  RandomStream random_{11, 0, Purpose::workload};
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> finish_ps_;
  std::vector<std::uint64_t> bytes_;
  std::vector<std::uint32_t> kind_;
  std::vector<std::vector<double>> times_;
  std::vector<Sent> messages_;
};

// --- machines and targets -----------------------------------------------------------------------------------------

// 256 NICs: 8 groups of 8 switches with 4 NICs each.
fabric::SampleMachine machine_256() {
  fabric::SampleMachine machine;
  machine.groups = 8;
  machine.switches = 8;
  machine.nodes = 32;
  machine.global_links = 4;
  return machine;
}

// 1,056 NICs: 33 groups of 8 switches with 4 NICs each, every group with one link to every other.
fabric::SampleMachine machine_1056() {
  fabric::SampleMachine machine = machine_256();
  machine.groups = 33;
  machine.global_links = 1;
  return machine;
}

// 512 NICs as on Aurora: 16 on a switch, switches joined by single links, two links between groups.
fabric::SampleMachine machine_512() {
  fabric::SampleMachine machine;
  machine.groups = 4;
  machine.switches = 8;
  machine.nodes = 128;
  machine.global_links = 16;
  return machine;
}

std::uint32_t uniform(std::uint32_t source, std::uint64_t number, std::uint32_t nics, std::uint64_t seed = 3) {
  const std::uint32_t drawn = RandomStream{seed, source, Purpose::workload}.below(number, nics - 1);
  return drawn + (drawn >= source ? 1 : 0);
}

// One cycle through all NICs.
std::vector<std::uint32_t> permutation(std::uint32_t nics, std::uint64_t seed) {
  const RandomStream random{seed, 1, Purpose::workload};
  std::vector<std::uint32_t> order(nics);
  for (std::uint32_t i = 0; i < nics; ++i) order[i] = i;
  for (std::uint32_t i = nics - 1; i > 0; --i) std::swap(order[i], order[random.below(i, i)]);
  std::vector<std::uint32_t> target(nics);
  for (std::uint32_t i = 0; i < nics; ++i) target[order[i]] = order[(i + 1) % nics];
  return target;
}

std::string fault(int number, const std::string& kind, const std::string& where, const std::string& more) {
  const std::string name = "faults." + std::to_string(number) + ".";
  return name + "kind " + kind + "\n" + name + "where " + where + "\n" + name + "from_ps 0\n" + more;
}

fabric::SampleMachine faulty(fabric::SampleMachine machine, int count, const std::string& faults) {
  machine.more +=
      "fabric.manager.topology_sweep_ps 1000000\nfabric.manager.routing_sweep_ps 1000000\n"
      "fabric.manager.deployment_sweep_ps 1000000\nfabric.packet.age_ps 10000000\n"
      "nic.retry.timeout_ps 1073741824\nnic.retry.count 4\nnic.retry.delay.0.ps 0\n"
      "nic.retry.delay.1.ps 4000000000\nnic.retry.delay.2.ps 8000000000\n"
      "nic.retry.delay.3.ps 12000000000\nfaults.seed 1\nfaults.count " +
      std::to_string(count) + "\n" + faults;
  return machine;
}

// --- patterns -----------------------------------------------------------------------------------------------------

// Those that the model was made with.
std::vector<Pattern> known_patterns() {
  std::vector<Pattern> all;
  all.push_back({"uniform random, 64 KiB, 8 at once, 1056",
                 machine_1056(),
                 {"all"},
                 8,
                 48,
                 [](std::uint32_t source, std::uint64_t n) { return Message{uniform(source, n, 1056), 64 * KiB}; }});
  all.push_back({"permutation, 1 MiB, 1056",
                 machine_1056(),
                 {"all"},
                 2,
                 6,
                 [targets = permutation(1056, 5)](std::uint32_t source, std::uint64_t) {
                   return Message{targets[source], MiB};
                 }});
  all.push_back(
      {"shift to the next switch, 256 KiB, 256",
       machine_256(),
       {"all"},
       2,
       16,
       [](std::uint32_t source, std::uint64_t) { return Message{source / 32 * 32 + (source + 4) % 32, 256 * KiB}; }});
  all.push_back({"shift to the next group, 256 KiB, 1056",
                 machine_1056(),
                 {"all"},
                 2,
                 8,
                 [](std::uint32_t source, std::uint64_t) { return Message{(source + 32) % 1056, 256 * KiB}; }});
  all.push_back({"32 to one with victims, 64 KiB, 256",
                 machine_256(),
                 {"hot", "victims"},
                 4,
                 64,
                 [](std::uint32_t source, std::uint64_t) {
                   if (source == 0) return Message{0, 0};
                   if (source % 8 == 1) return Message{0, 64 * KiB, 0};
                   return Message{(source + 64) % 256, 64 * KiB, 1};
                 }});
  all.push_back({"pairs on neighbouring switches, 1 MiB, 256",
                 machine_256(),
                 {"all"},
                 4,
                 16,
                 [](std::uint32_t source, std::uint64_t) {
                   return source % 8 < 4 ? Message{source + 4, MiB} : Message{source, 0};
                 }});
  all.push_back(
      {"pairs across the machine, 1 MiB, 256", machine_256(), {"all"}, 4, 16, [](std::uint32_t source, std::uint64_t) {
         return source < 128 ? Message{source + 128, MiB} : Message{source, 0};
       }});
  return all;
}

// Those that were chosen when the model was done.
std::vector<Pattern> later_patterns() {
  std::vector<Pattern> all;
  all.push_back({"all to all in order, 16 KiB, 8 at once, 256",
                 machine_256(),
                 {"all"},
                 8,
                 255,
                 [](std::uint32_t source, std::uint64_t n) {
                   return Message{static_cast<std::uint32_t>((source + 1 + n) % 256), 16 * KiB};
                 }});
  all.push_back({"halo in three dimensions, 128 KiB, 256",
                 machine_256(),
                 {"all"},
                 6,
                 60,
                 [](std::uint32_t source, std::uint64_t n) {
                   constexpr std::uint32_t steps[] = {1, 255, 8, 248, 64, 192};
                   return Message{(source + steps[n % 6]) % 256, 128 * KiB};
                 }});
  all.push_back(
      {"short among long, 256", machine_256(), {"short", "long"}, 4, 64, [](std::uint32_t source, std::uint64_t n) {
         if (source % 2 == 0) return Message{uniform(source, n, 256, 8), 256, 0};
         return Message{uniform(source, n, 256, 9), 256 * KiB, 1};
       }});
  all.push_back({"two classes to shared NICs, 128 KiB, 256",
                 machine_256(),
                 {"usual", "bulk"},
                 4,
                 32,
                 [](std::uint32_t source, std::uint64_t) {
                   const bool bulk = source % 2 == 1;
                   return Message{(source / 2 * 2 + 32) % 256, 128 * KiB, bulk ? 1U : 0U,
                                  bulk ? TrafficClass::bulk_data : TrafficClass::best_effort};
                 }});
  Pattern open{"uniform random at half load, 4 KiB, 1056",
               machine_1056(),
               {"all"},
               1,
               150,
               [](std::uint32_t source, std::uint64_t n) { return Message{uniform(source, n, 1056, 4), 4 * KiB}; }};
  open.interval_ps = 2 * 165'760;
  all.push_back(open);
  all.push_back({"uniform random, 1 MiB, 2 at once, 512",
                 machine_512(),
                 {"all"},
                 2,
                 8,
                 [](std::uint32_t source, std::uint64_t n) { return Message{uniform(source, n, 512, 6), MiB}; }});
  all.push_back({"ordered lines to random NICs, 128 KiB, 512",
                 machine_512(),
                 {"all"},
                 4,
                 24,
                 [](std::uint32_t source, std::uint64_t n) {
                   return Message{uniform(source, n, 512, 7), 128 * KiB, 0, TrafficClass::best_effort, true};
                 }});
  return all;
}

// With faults that the routes learn of within microseconds.
std::vector<Pattern> faulty_patterns() {
  const Dragonfly dragonfly(machine_256().spec());
  const GlobalEnd& between = dragonfly.global_ends({0}, {1})[0];
  const std::string link = "s" + std::to_string(between.near.value) + "-s" + std::to_string(between.far.value);
  const auto shift = [](std::uint32_t source, std::uint64_t) {
    return Message{(source + 32) % 256, 256 * KiB, source < 32 ? 0U : 1U};
  };
  std::vector<Pattern> all;
  Pattern lanes{
      "one lane of four on a NIC and a local link, 256",
      faulty(machine_256(), 2,
             fault(0, "lanes", "n5", "faults.0.lanes 1\n") + fault(1, "lanes", "s0-s1", "faults.1.lanes 1\n")),
      {"hit", "others"},
      2,
      16,
      [](std::uint32_t source, std::uint64_t) { return Message{(source + 4) % 256, 256 * KiB, source < 8 ? 0U : 1U}; }};
  lanes.with_faults = true;
  all.push_back(lanes);
  Pattern drained{"a link between groups drained, 256",
                  faulty(machine_256(), 1, fault(0, "drain", link, "")),
                  {"of it", "others"},
                  2,
                  16,
                  shift};
  drained.with_faults = true;
  all.push_back(drained);
  Pattern down{"a NIC's link down for 30 us, 256",
               faulty(machine_256(), 1,
                      "faults.0.kind down\nfaults.0.where n5\nfaults.0.from_ps 50000000\nfaults.0.until_ps 80000000\n"),
               {"its own", "others"},
               4,
               64,
               [](std::uint32_t source, std::uint64_t n) {
                 return Message{uniform(source, n, 256, 10), 64 * KiB, source == 5 ? 0U : 1U};
               }};
  down.with_faults = true;
  all.push_back(down);
  return all;
}

}  // namespace
}  // namespace dryfly

int main(int count, char** words) {
  using namespace dryfly;
  std::vector<Pattern> all = known_patterns();
  for (const auto& more : {later_patterns(), faulty_patterns()}) all.insert(all.end(), more.begin(), more.end());
  std::vector<double> errors;
  std::printf("%-52s %-8s %9s %9s %7s %9s %9s %7s %7s\n", "pattern", "kind", "GB/s", "flow", "error", "us", "flow",
              "error", "faster");
  for (const Pattern& pattern : all) {
    bool wanted = count < 2;
    for (int at = 1; at < count; ++at) wanted = wanted || pattern.name.find(words[at]) != std::string::npos;
    if (!wanted) continue;
    const Outcome packet = Bench<PacketNetwork>(pattern).run();
    const Outcome flow = Bench<FlowNetwork>(pattern).run();
    for (std::size_t kind = 0; kind < pattern.kinds.size(); ++kind) {
      const Kind& a = packet.kinds[kind];
      const Kind& b = flow.kinds[kind];
      const double rate = b.rate / a.rate - 1;
      const double time = b.time / a.time - 1;
      errors.push_back(std::abs(rate));
      errors.push_back(std::abs(time));
      std::printf("%-52s %-8s %9.3f %9.3f %+6.1f%% %9.2f %9.2f %+6.1f%% %6.1fx  p99 %.1f %.1f  %.2fs\n",
                  kind == 0 ? pattern.name.c_str() : "", pattern.kinds[kind].c_str(), a.rate * 1e-9, b.rate * 1e-9,
                  100 * rate, a.time * 1e6, b.time * 1e6, 100 * time, packet.seconds / flow.seconds, a.p99 * 1e6,
                  b.p99 * 1e6, flow.seconds);
    }
    if (pattern.with_faults) {
      std::printf("    time-outs %llu %llu, packets lost %llu %llu\n",
                  static_cast<unsigned long long>(packet.faults.network_timeouts),
                  static_cast<unsigned long long>(flow.faults.network_timeouts),
                  static_cast<unsigned long long>(packet.faults.pieces_lost),
                  static_cast<unsigned long long>(flow.faults.pieces_lost));
    }
    std::fflush(stdout);
  }
  if (errors.empty()) return 2;
  std::sort(errors.begin(), errors.end());
  std::printf("worst %.1f %%\nfigure %.2f %%\n", 100 * errors.back(), 100 * errors[errors.size() / 2]);
  return 0;
}
