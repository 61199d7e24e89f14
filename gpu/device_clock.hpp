// The rank's virtual clock, as a GPU runtime needs it. The preload exports these (preload/clock/device_calls.cpp);
// where it is absent, or the process is outside virtual time, nothing takes time.
#pragma once

#include <cstdint>

extern "C" {
// A call of the runtime begins: what the program has computed up to here is charged, and what this computer's processor
// does until the end of the call is not. -1: of a thread that has no clock; -2: virtual time has not begun, or is over;
// else for dryfly_device_leave.
__attribute__((weak)) int dryfly_device_enter();
__attribute__((weak)) void dryfly_device_leave(int entered);
// Picoseconds since virtual time began.
__attribute__((weak)) std::uint64_t dryfly_device_now();
// Moves the clock on to that instant, if it is not past.
__attribute__((weak)) void dryfly_device_wait(std::uint64_t until_ps);
// Streams go on beside the program from now on: rank::DeviceStreams says what the clock asks of them.
__attribute__((weak)) void dryfly_device_streams(std::uint64_t (*next_ps)(), bool (*wait)(),
                                                 void (*act)(std::uint64_t at_ps),
                                                 void (*written)(std::uint64_t address, std::uint64_t value,
                                                                 std::uint32_t bytes, std::uint64_t at_ps));
// Moves the clock to where a stream goes on, or to what one may wait for; 0: there is no such instant.
__attribute__((weak)) int dryfly_device_serve();
// A stream has written there, or a kernel somewhere (0): NICs have registers in memory.
__attribute__((weak)) void dryfly_device_wrote(std::uint64_t address, std::uint64_t at_ps);
// A stream waits for that memory. 1: it shows what NICs do at their instants; 0: `written` will tell.
__attribute__((weak)) int dryfly_device_watch(std::uint64_t address, std::uint32_t bytes);
}
