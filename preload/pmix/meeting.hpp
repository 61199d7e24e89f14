// Where ranks meet in virtual time instead of in the process manager, in whose calls they would wait in wall time and
// hold the virtual time that others need to get there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/rank.hpp"

namespace dryfly::preload {

// Comes back when `count` ranks have come to the meeting.
inline void meet(std::uint64_t meeting, std::size_t count) {
  dryfly_self.page->gate.meeting = meeting;
  dryfly_self.page->gate.meeting_size = static_cast<std::uint32_t>(count);
  dryfly_self.gate(wire::GateKind::meet);
}

}  // namespace dryfly::preload
