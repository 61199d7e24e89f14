// What a rank says of its own settings. A wrapper script may set them for each rank, so they are looked at again where
// the rank asks for its NICs; those that all ranks inherit python/dryfly/case has seen before the start.
#pragma once

#include <cstdint>

#include "rank/channel.hpp"

namespace dryfly::provider {

// A rank of a run says what is wrong and ends, and the run with it; its MPI library would only say that there is no
// NIC. On a served fabric, where the process is nobody's rank, it is said and this returns.
void refuse_setting(const rank::Channel& channel, const char* reason);

// Says a sentence once for the run, behind the rank's name, and goes on: the first rank's about each of these.
enum class About : std::uint32_t { service, traffic_class, triggered };
[[gnu::format(printf, 3, 4)]] void tell(const rank::Channel& channel, About about, const char* format, ...);

}  // namespace dryfly::provider
