#include "core/motif/collective/decisions.hpp"

#include <algorithm>
#include <utility>

namespace dryfly::motif {

void Decisions::Range::take(std::uint64_t value) {
  least = std::min(least, value);
  most = std::max(most, value);
}

std::string Decisions::Range::text() const {
  return least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
}

void Decisions::add(const CollectiveCall& call, std::uint32_t ranks, std::string_view algorithm,
                    const std::string& why) {
  const std::lock_guard lock(mutex_);
  Seen& seen = seen_[{call.what, std::string(algorithm), why}];
  seen.bytes.take(call.size.count);
  seen.ranks.take(ranks);
}

std::vector<std::string> Decisions::sentences() const {
  const std::lock_guard lock(mutex_);
  using Entry = std::pair<std::tuple<Collective, std::string, std::string>, Seen>;
  std::vector<Entry> ordered(seen_.begin(), seen_.end());
  std::ranges::stable_sort(ordered, {}, [](const Entry& entry) {
    return std::pair(std::get<Collective>(entry.first), entry.second.bytes.least);
  });
  std::vector<std::string> found;
  for (const auto& [key, seen] : ordered) {
    const auto& [what, algorithm, why] = key;
    const std::string size = what == Collective::barrier ? "" : " of " + seen.bytes.text() + " B";
    found.push_back(std::string(name_of(what)) + size + " on " + seen.ranks.text() + " ranks: " + algorithm + " (" +
                    why + ")");
  }
  return found;
}

}  // namespace dryfly::motif
