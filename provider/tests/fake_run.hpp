// A run without a conductor: stands in for rank/channel.cpp and rank/polls.cpp in the provider's tests. Keeps the
// commands that the provider pushes and hands it the events that a test puts in; virtual time is a variable.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "rank/channel.hpp"

namespace dryfly::test {

struct PushedCommand {
  wire::Command command;
  std::string payload;
  bool stable = true;
};

struct FakeRun {
  bool present = true;  // false: this process belongs to no run
  wire::Welcome welcome{};
  wire::SegmentHeader* header = nullptr;
  wire::RankPage* page = nullptr;
  std::vector<PushedCommand> pushed;
  std::deque<wire::Event> events;
  std::deque<std::string> payloads;  // of the events
  std::size_t under_way = 0;         // of the events, the last so many have not come to the ring yet
  int pushes_to_refuse = 0;          // the arena is full this often
  int idle_calls = 0;
  int settle_calls = 0;
  int wake_descriptor = -1;  // of a served fabric
  std::uint64_t now_ps() const;

  // An event visible `after_ps` from now.
  void add(wire::Event event, std::uint64_t after_ps = 0, const std::string& payload = {});
};

FakeRun& fake_run();

// Send 10, receive 20, RMA 30, completion 40 and poll 50 ps, so that sums tell the calls apart.
inline constexpr wire::HostCosts costs{.send_ps = 10,
                                       .send_fetched_ps = 11,
                                       .receive_ps = 20,
                                       .rma_ps = 30,
                                       .rma_fetched_ps = 31,
                                       .completion_ps = 40,
                                       .sent_ps = 41,
                                       .received_ps = 42,
                                       .poll_ps = 50,
                                       .match_ps = 7};

}  // namespace dryfly::test
