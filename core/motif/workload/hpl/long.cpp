#include "core/motif/workload/hpl/broadcast.hpp"

namespace dryfly::motif::hpl {
namespace {

// How often the part of the members that this one is in is halved.
std::uint32_t tree_rounds(std::uint32_t members, std::uint32_t member) {
  std::uint32_t rounds = 0;
  for (std::uint32_t low = 0, high = members; high - low > 1; ++rounds) {
    const std::uint32_t middle = (low + high + 1) / 2;
    (member < middle ? high : low) = middle;
  }
  return rounds;
}

}  // namespace

bool spread_and_roll(const PanelRow& panel, std::uint32_t begin, std::uint32_t number, flight::Transfers& transfers) {
  const std::uint32_t members = panel.size - begin + 1;  // with the root
  if (panel.size <= begin || (panel.position != 0 && panel.position < begin)) return false;
  const std::uint32_t mine = panel.position == 0 ? 0 : panel.position - begin + 1;
  const auto position_of = [&](std::uint32_t member) { return member == 0 ? 0 : member + begin - 1; };
  const auto offset = [&](std::uint64_t member) { return panel.elements * member / members; };
  std::uint32_t low = 0;
  std::uint32_t high = members;
  for (std::uint32_t before = 0; high - low > 1; ++before) {
    const std::uint32_t middle = (low + high + 1) / 2;
    if (before == number) {
      const std::uint64_t length = offset(high) - offset(middle);
      if (mine == low) panel.send(transfers, position_of(middle), length);
      if (mine == middle) panel.receive(transfers, position_of(low), length);
      return true;
    }
    (mine < middle ? high : low) = middle;
  }
  const std::uint32_t lump = number - tree_rounds(members, mine);
  if (lump >= panel.lumping.run(members - 1)) return false;
  const auto pieces = [&](std::uint32_t member) {
    std::uint64_t sum = 0;
    for (std::uint32_t turn = panel.lumping.first(lump, members - 1); turn < panel.lumping.first(lump + 1, members - 1);
         ++turn) {
      const std::uint32_t piece = (member + members - turn) % members;
      sum += offset(piece + 1) - offset(piece);
    }
    return sum;
  };
  const std::uint32_t previous = (mine + members - 1) % members;
  panel.send(transfers, position_of((mine + 1) % members), pieces(mine));
  panel.receive(transfers, position_of(previous), pieces(previous));
  return true;
}

}  // namespace dryfly::motif::hpl
