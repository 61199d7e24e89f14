// A test stand with a processor behind the NICs: it does what they ask of it, 50 ns after everything else is over.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "testing/test_stand.hpp"

namespace dryfly::nic {

inline constexpr std::uint64_t reaction = 50 * ns;

// Does all work that comes up, and keeps a list of it.
struct Working {
  TestStand stand;
  std::vector<WorkKind> done;

  explicit Working(std::uint32_t entries) : stand(with_entries(entries)) {}
  explicit Working(const NicSpec& spec) : stand(spec) {}
  static NicSpec with_entries(std::uint32_t entries) {
    NicSpec spec = TestStand::round_figures();
    spec.list_entries = entries;
    return spec;
  }
  void reopen(std::uint32_t endpoint, const EndpointSettings& settings) {
    stand.nics.close_endpoint(EndpointId{endpoint});
    constexpr std::uint32_t nics[] = {0, 0, 1, 2};
    stand.nics.open_endpoint(EndpointId{endpoint}, NicId{nics[endpoint]}, NodeId{endpoint < 2 ? 0U : 1U}, settings);
  }
  // `until`: the processor does nothing before.
  void run(std::uint64_t until = 0) {
    stand.run();
    while (!stand.all_work.empty()) {
      const auto work = std::exchange(stand.all_work, {});
      for (const auto& [at, item] : work) {
        done.push_back(item.kind);
        const std::uint64_t when = std::max(stand.engine.now().ps + reaction, until);
        stand.at(when, [this, at = at, item = item] { stand.nics.worked(at, item); });
      }
      stand.run();
    }
  }
  std::vector<std::uint64_t> received_sends() const {
    std::vector<std::uint64_t> sends;
    for (const Received& received : stand.all_received) sends.push_back(received.send);
    return sends;
  }
  MatchingTotals totals() const { return stand.nics.totals().matching; }
};

inline EndpointSettings mode(MatchMode mode) { return {.match_mode = mode}; }

}  // namespace dryfly::nic
