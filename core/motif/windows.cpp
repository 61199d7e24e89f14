#include <algorithm>
#include <memory>

#include "core/motif/cores.hpp"
#include "core/motif/patterns.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::generator {
namespace {

enum Tag : std::uint64_t { message, answer };

// A rank that has one CPU: what it does takes its turn.
struct Processor {
  Stand& stand;
  Cores& cores;
  std::size_t rank;
  Instant free{};

  Instant does(Duration cost) { return free = cores.after(rank, std::max(free, stand.now()), cost); }
  Instant sees(Duration cost, Duration wake) {
    const bool has_waited = free < stand.now();
    return does(has_waited ? cost + wake : cost);
  }
};

// The two ranks of a pair, each in its own loop over windows.
struct WindowPair {
  const Windows& plan;
  const CpuCosts& costs;
  Stand& stand;
  Cores& cores;
  std::size_t pair;
  std::size_t pairs;
  EndpointId from;
  EndpointId to;
  bool is_fetched;  // a short payload is in the command: nobody waits until it has left
  Processor source{stand, cores, pair};
  Processor target{stand, cores, pair + pairs};
  std::uint64_t windows_sent = 0;
  std::uint64_t windows_received = 0;
  std::uint64_t unsent = 0;
  std::uint64_t unreceived = 0;

  void send_window() {
    unsent = plan.window;
    for (std::uint64_t n = 0; n < plan.window; ++n) {
      stand.at(source.does(is_fetched ? costs.send_fetched : costs.send), [this] {
        stand.send(from, to, plan.size, message, [this] {
          if (is_fetched) has_left();
        });
      });
    }
    if (!is_fetched) stand.at(source.free, [this] { take_answer(); });
  }
  void has_left() {
    const Instant seen = source.sees(costs.sent, costs.wake);
    if (--unsent == 0) stand.at(seen, [this] { take_answer(); });
  }
  void take_answer() {
    stand.at(source.does(costs.receive), [this] {
      stand.receive(from, answer_size, answer, [this] {
        stand.at(source.sees(costs.received, costs.wake), [this] {
          if (++windows_sent < plan.count) send_window();
        });
      });
    });
  }

  void receive_window() {
    unreceived = plan.window;
    for (std::uint64_t n = 0; n < plan.window; ++n) {
      stand.at(target.does(costs.receive), [this] { stand.receive(to, plan.size, message, [this] { has_come(); }); });
    }
  }
  void has_come() {
    const Instant seen = target.sees(costs.received, costs.wake);
    if (--unreceived > 0) return;
    stand.at(seen, [this] {
      stand.at(target.does(costs.send), [this] {
        stand.send(to, from, answer_size, answer, [] {});
        if (++windows_received < plan.count) receive_window();
      });
    });
  }

  static constexpr Bytes answer_size{4};
};

}  // namespace

std::vector<std::uint64_t> windows_ps(Stand& stand, const std::vector<NicId>& ranks, const Windows& plan,
                                      const CpuCosts& costs) {
  const std::size_t pairs = ranks.size() / 2;
  const bool is_fetched = plan.size.count > stand.spec().number(fields::nic_inline_bytes);
  Cores cores(stand, ranks);
  std::vector<EndpointId> endpoints;
  for (const NicId nic : ranks) endpoints.push_back(stand.open(nic));
  std::vector<std::unique_ptr<WindowPair>> all;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    all.push_back(std::make_unique<WindowPair>(
        WindowPair{plan, costs, stand, cores, pair, pairs, endpoints[pair], endpoints[pair + pairs], is_fetched}));
    all.back()->receive_window();
    all.back()->send_window();
  }
  stand.run();
  std::vector<std::uint64_t> times;
  for (const auto& pair : all) times.push_back(pair->source.free.ps);
  return times;
}

}  // namespace dryfly::generator
