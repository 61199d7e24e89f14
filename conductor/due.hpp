// The events that the conductor has on the engine: something of a rank's is due. At one instant they come in this
// order, and by rank.
#pragma once

#include <cstdint>

#include "core/engine/engine.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

enum class Due : std::uint32_t {
  at_nic,     // a command
  at_memory,  // a command to an end-point that talks through memory
  news,       // an event that was kept (EventWriter)
  triggered,  // a command whose counter is there (Triggers)
};

inline constexpr unsigned due_shift = 32;
constexpr std::uint64_t key_of(Due due, RankId rank) {
  return static_cast<std::uint64_t>(ComponentClass::host) << component_class_shift |
         static_cast<std::uint64_t>(due) << due_shift | rank.value;
}
constexpr Due due_of(Event event) { return static_cast<Due>((event.key >> due_shift) & 3); }
constexpr RankId rank_of(Event event) { return RankId{static_cast<std::uint32_t>(event.key)}; }

}  // namespace dryfly
