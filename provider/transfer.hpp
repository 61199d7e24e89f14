// The last step of every operation that goes out: stamp it, hand it to the simulator, and keep its record only if
// somebody wants to hear of it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "provider/device_memory.hpp"
#include "provider/ep.hpp"

namespace dryfly::provider {

// A buffer that the NIC is to move by DMA: charges what it costs to make it known to the NIC.
// Says where the NIC finds it, as wire::BufferPages.
inline std::uint64_t register_buffer(const Session& session, Domain& domain, const void* buffer, std::size_t length) {
  reach(session, domain, buffer, length);
  if (length == 0 || !domain.registers) return 0;
  if (!domain.registrations.holds_as_before(reinterpret_cast<std::uint64_t>(buffer), length)) {
    register_other_buffer(session, domain, buffer, length);
  } else if (wire::RegistrationCounts* counts = session.channel().registered(); counts != nullptr) {
    ++counts->hits;
  }
  return domain.registrations.pages_of(reinterpret_cast<std::uint64_t>(buffer));
}

// The completion level that a call asks for beyond the acknowledgement of the target's NIC, as flags of its command.
inline std::uint32_t completion_level(std::uint64_t call_flags) {
  if ((call_flags & FI_MATCH_COMPLETE) != 0) return wire::command_flag::match_complete;
  return (call_flags & FI_DELIVERY_COMPLETE) != 0 ? wire::command_flag::delivery_complete : 0;
}

// FI_FENCE of a call; false when its end-point has not asked for the capability.
inline bool take_fence(const Endpoint& endpoint, std::uint64_t call_flags, wire::Command& command) {
  if ((call_flags & FI_FENCE) == 0) return true;
  command.flags |= wire::command_flag::fence;
  return (endpoint.capabilities & FI_FENCE) != 0;
}

// Whether the NIC fetches the operands of an atomic from where the call has them, which are not injected.
bool fetches_operands(const Session& session, const Operation& operation, const wire::Command& command);

// `cost_ps`: what the call costs the CPU. `stable`: the buffer stays unchanged until the operation completes.
// -FI_EAGAIN when there is no room for the payload; the record is gone then.
ssize_t push_transfer(const Session& session, Operation& operation, wire::Command& command, const void* payload,
                      std::size_t length, bool stable, std::uint64_t cost_ps);

}  // namespace dryfly::provider
