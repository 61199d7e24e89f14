// The rank's virtual clock, as a GPU runtime needs it. The preload exports these (preload/clock/device_calls.cpp);
// where it is absent, or the process is outside virtual time, nothing takes time.
#pragma once

#include <cstdint>

extern "C" {
// A call of the runtime begins: what the program has computed up to here is charged, and what this computer's processor
// does until the end of the call is not. -1: outside virtual time; else for dryfly_device_leave.
__attribute__((weak)) int dryfly_device_enter();
__attribute__((weak)) void dryfly_device_leave(int entered);
// Picoseconds since virtual time began.
__attribute__((weak)) std::uint64_t dryfly_device_now();
// Moves the clock on to that instant, if it is not past.
__attribute__((weak)) void dryfly_device_wait(std::uint64_t until_ps);
}
