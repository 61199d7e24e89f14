#include "conductor/triggers.hpp"

#include <algorithm>

namespace dryfly {

namespace {

std::uint64_t value_in(const std::unordered_map<std::uint32_t, std::uint64_t>& counters, std::uint32_t counter) {
  const auto found = counters.find(counter);
  return found == counters.end() ? 0 : found->second;
}

}  // namespace

bool Triggers::is_due(const State& state, std::uint32_t slot) const {
  const wire::Command& command = commands_[slot].command;
  return value_in(state.counters, command.trigger) >= command.threshold;
}

std::uint64_t Triggers::value(RankId rank, std::uint32_t counter) const {
  const auto state = states_.find(rank.value);
  return state == states_.end() ? 0 : value_in(state->second.counters, counter);
}

std::uint64_t Triggers::without_entry(RankId rank) const {
  const auto state = states_.find(rank.value);
  if (state == states_.end()) return 0;
  return state->second.waiting.size() - std::min(state->second.waiting.size(), entries_);
}

bool Triggers::holds(std::uint32_t slot) {
  State& state = states_[commands_[slot].rank.value];
  if (state.waiting.size() < entries_ && is_due(state, slot)) return false;
  if (state.waiting.size() >= entries_) ++entries_missed_;
  state.waiting.push_back(slot);
  waiting_max_ = std::max(waiting_max_, state.waiting.size());
  return true;
}

void Triggers::add(RankId rank, std::uint32_t counter, std::uint64_t value) {
  State& state = states_[rank.value];
  state.counters[counter] += value;
  look(rank, state);
}

void Triggers::set(RankId rank, std::uint32_t counter, std::uint64_t value) {
  State& state = states_[rank.value];
  state.counters[counter] = value;
  look(rank, state);
}

// The NIC that has counted is in the middle of something, so what is due goes on as an event of its own.
void Triggers::look(RankId rank, const State& state) {
  const std::size_t with_entry = std::min(state.waiting.size(), entries_);
  for (std::size_t i = 0; i < with_entry; ++i) {
    if (!is_due(state, state.waiting[i])) continue;
    ++events_scheduled_;
    return engine_.schedule(engine_.now(), key_of(Due::triggered, rank));
  }
}

std::uint32_t Triggers::take_due(RankId rank) {
  State& state = states_[rank.value];
  const std::size_t with_entry = std::min(state.waiting.size(), entries_);
  for (std::size_t i = 0; i < with_entry; ++i) {
    const std::uint32_t slot = state.waiting[i];
    if (!is_due(state, slot)) continue;
    state.waiting.erase(state.waiting.begin() + static_cast<std::ptrdiff_t>(i));
    return slot;
  }
  return no_slot;
}

std::uint32_t Triggers::take_out(RankId rank, std::uint64_t context) {
  State& state = states_[rank.value];
  const auto found = std::ranges::find_if(
      state.waiting, [&](std::uint32_t slot) { return commands_[slot].command.context == context; });
  if (found == state.waiting.end()) return no_slot;
  const std::uint32_t slot = *found;
  state.waiting.erase(found);
  look(rank, state);  // its entry may be another's now
  return slot;
}

std::vector<std::uint32_t> Triggers::take_all(EndpointId endpoint) {
  const auto state = states_.find(wire::address_rank(endpoint.value));
  if (state == states_.end()) return {};
  std::vector<std::uint32_t> taken;
  std::erase_if(state->second.waiting, [&](std::uint32_t slot) {
    // What is done to a counter is of no end-point.
    const wire::CommandKind kind = commands_[slot].command.kind;
    const bool is_counters = kind == wire::CommandKind::count || kind == wire::CommandKind::write_back;
    if (is_counters || commands_[slot].endpoint() != endpoint) return false;
    taken.push_back(slot);
    return true;
  });
  if (!taken.empty()) look(RankId{state->first}, state->second);  // their entries may be others' now
  return taken;
}

}  // namespace dryfly
