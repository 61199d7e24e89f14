// The broadcast of a panel along a process row, in HPL's six ways, a file for each kind of way: what one process sends
// and receives in each round, as programs/hpl/traffic.cpp has it.
//
// In the modified forms the next owner of a panel gets this one first and alone: it has nothing to pass on.
#pragma once

#include <cstdint>

#include "core/motif/flight/traffic.hpp"
#include "core/motif/workload/hpl/problem.hpp"

namespace dryfly::motif::hpl {

// A process row with a panel on its way, seen from one of its processes. Positions are counted from the root.
struct PanelRow {
  const Problem* problem = nullptr;
  std::uint32_t row = 0;
  std::uint32_t root = 0;      // its column
  std::uint32_t position = 0;  // of this process
  std::uint32_t size = 1;
  std::uint64_t elements = 0;
  std::uint32_t tag = 0;
  flight::Lumping lumping;  // of the rounds of a ring of pieces

  void send(flight::Transfers& transfers, std::uint32_t to, std::uint64_t count) const {
    pass(transfers, to, count, true);
  }
  void receive(flight::Transfers& transfers, std::uint32_t from, std::uint64_t count) const {
    pass(transfers, from, count, false);
  }

 private:
  void pass(flight::Transfers& transfers, std::uint32_t peer, std::uint64_t count, bool is_send) const {
    transfers.push_back({problem->rank_at(row, (root + peer) % size), tag, count * element_bytes, is_send});
  }
};

// The ways: what this process does in round `number`; false: there is no such round. The positions from `begin` on, and
// the root, take part.
bool ring(const PanelRow& panel, std::uint32_t begin, std::uint32_t number, flight::Transfers& transfers);
bool two_rings(const PanelRow& panel, std::uint32_t begin, std::uint32_t number, flight::Transfers& transfers);
bool spread_and_roll(const PanelRow& panel, std::uint32_t begin, std::uint32_t number, flight::Transfers& transfers);
// The positions [begin, end) hand all of it on, one to the next; the root gives it to the first of them.
bool chain(const PanelRow& panel, std::uint32_t begin, std::uint32_t end, std::uint32_t number,
           flight::Transfers& transfers);

class PanelBroadcast final : public flight::Rounds {
 public:
  PanelBroadcast() = default;
  explicit PanelBroadcast(const PanelRow& panel) : panel_(panel) {}

  bool round(std::uint32_t number, flight::Transfers& transfers) const override;
  Duration rest() const override;

 private:
  PanelRow panel_;
};

}  // namespace dryfly::motif::hpl
