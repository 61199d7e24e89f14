// The skeleton of HPL-MxP: the broadcast that goes on beside a rank's products.
#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <tuple>

#include "core/motif/workload/hplmxp/left_broadcast.hpp"

namespace dryfly::motif::hplmxp {
namespace {

struct Passed {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, int>
      open;  // source, target, tag: sent, not received
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

Passed all_rounds(std::uint32_t ranks, std::uint32_t root, std::uint64_t bytes) {
  const Communicator row(0, 1, ranks, 1);
  Passed passed;
  for (std::uint32_t place = 0; place < ranks; ++place) {
    const LeftBroadcast rounds(row, place, root, bytes, 0);
    flight::Transfers transfers;
    for (std::uint32_t number = 0; rounds.round(number, transfers); ++number) {
    }
    for (const flight::Transfer& each : transfers) {
      if (each.bytes == 0) continue;
      if (!each.is_send) {
        --passed.open[{each.peer, place, each.tag}];
        continue;
      }
      ++passed.open[{place, each.peer, each.tag}];
      ++passed.messages;
      passed.bytes += each.bytes;
    }
  }
  return passed;
}

TEST_CASE("whatever is sent is waited for, down trees, by doubling and around rings") {
  for (const std::uint32_t ranks : {2U, 3U, 7U, 8U, 9U, 16U}) {
    for (const std::uint64_t bytes : {64U, 12288U, 100'000U, 600'000U}) {
      for (const auto& [message, open] : all_rounds(ranks, ranks / 2, bytes).open) CHECK(open == 0);
    }
  }
}

TEST_CASE("few ranks get all at once, more of them parts") {
  const Passed tree = all_rounds(7, 0, 700'000);
  CHECK(tree.messages == 6);
  CHECK(tree.bytes == 6 * 700'000);
  // 7 messages scatter, of which those of places 2 and 6 have a successor's part and the rest: 4 + 2 + 1, 5, 2 + 1 and
  // 1 of 8 parts; then each of 8 gets 1, 2 and 4 parts.
  const Passed doubling = all_rounds(8, 3, 80'000);
  CHECK(doubling.messages == 7 + 3 * 8);
  CHECK(doubling.bytes == 10'000 * (7 + 5 + 3 + 1 + 7 * 8));
  // Around the ring each of 8 gets 7 parts.
  const Passed ring = all_rounds(8, 3, 800'000);
  CHECK(ring.messages == 7 + 7 * 8);
  CHECK(ring.bytes == 100'000 * (7 + 5 + 3 + 1 + 7 * 8));
}

}  // namespace
}  // namespace dryfly::motif::hplmxp
