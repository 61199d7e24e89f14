// Calls that a program makes again and again until something has happened, or all of several things: how often depends
// on the time that messages take (preload/clock/compute.hpp).
#pragma once

#include "preload/mpi/mpi_calls.hpp"

namespace dryfly::preload {

constexpr bool is_poll(Call call) {
  switch (call) {
    case Call::Improbe:
    case Call::Iprobe:
    case Call::Parrived:
    case Call::Request_get_status:
    case Call::Request_get_status_all:
    case Call::Request_get_status_any:
    case Call::Request_get_status_some:
    case Call::Test:
    case Call::Testall:
    case Call::Testany:
    case Call::Testsome:
    case Call::Waitsome:
    case Call::Win_test:
      return true;
    default:
      return false;
  }
}

}  // namespace dryfly::preload
