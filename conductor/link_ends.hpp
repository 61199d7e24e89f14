// A link as results and recordings name it: kind, and group and switch, or node and NIC, of its ends.
#pragma once

#include <cstdint>

#include "core/record/json_writer.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

// The port at the other end of a cable.
std::uint32_t port_opposite(const Dragonfly& topology, std::uint32_t port);
// Which of its switch's ports a port is.
std::uint32_t index_at_switch(const Dragonfly& topology, std::uint32_t port);

// `port` drives the link: one of a switch, or, numbered behind those, a NIC's.
void write_link_ends(JsonWriter& json, const Dragonfly& topology, std::uint32_t port);

}  // namespace dryfly
