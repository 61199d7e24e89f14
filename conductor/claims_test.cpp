#include "conductor/claims.hpp"

#include <doctest/doctest.h>

namespace dryfly {
namespace {

std::uint32_t peek(OpenCommands& commands, std::uint32_t endpoint, std::uint64_t context) {
  const std::uint32_t slot = commands.allocate();
  commands[slot].command.kind = wire::CommandKind::tagged_peek;
  commands[slot].command.endpoint = endpoint;
  commands[slot].command.context = context;
  return slot;
}

TEST_CASE("a claim is taken once, by its end-point and its context") {
  OpenCommands commands;
  Claims claims(commands);
  const std::uint32_t first = peek(commands, 0, 7);
  const std::uint32_t other = peek(commands, 1, 7);
  claims.add(first);
  claims.add(other);
  CHECK(claims.take(EndpointId{0}, 8) == no_slot);
  CHECK(claims.take(EndpointId{0}, 7) == first);
  CHECK(claims.take(EndpointId{0}, 7) == no_slot);
  CHECK(claims.take(EndpointId{1}, 7) == other);
}

TEST_CASE("claims of an end-point that has closed are forgotten, those of others are not") {
  OpenCommands commands;
  Claims claims(commands);
  const std::uint32_t kept = peek(commands, 1, 7);
  claims.add(peek(commands, 0, 7));
  claims.add(kept);
  claims.forget(EndpointId{0});
  CHECK(claims.take(EndpointId{0}, 7) == no_slot);
  CHECK(claims.take(EndpointId{1}, 7) == kept);
}

}  // namespace
}  // namespace dryfly
