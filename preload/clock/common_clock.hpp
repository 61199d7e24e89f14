// A rank has one clock for all its threads. While one of them waits in MPI, that one moves it, from event to event: so
// a message is found when it comes, whatever the others do. A thread outside MPI that is to be at a later instant (it
// has computed, reads a clock, sleeps) asks for that instant (PendingWait), and waits for real until the clock has come
// there, or until nobody waits in MPI any more and it can move the clock itself.
//
// One that is outside between two calls is waited for too, as long as it runs and has not come as far by its CPU time.
#pragma once

#include <cstdint>

namespace dryfly::preload {

// Does another thread of the rank move the clock, by waiting in MPI, while the calling one is outside?
bool another_moves_clock();
// Is the clock to be moved to that instant by whoever comes there first, and may one of them come before?
bool clock_is_shared(std::uint64_t at_ps);
// Waits until the clock has come to that instant, or until no other thread may act before.
void wait_for_clock(std::uint64_t at_ps);
// Waits for a part of that, for no longer than so much real time.
void rest_for_clock(std::uint64_t at_ps, std::uint64_t most_ns);

// For the thread that moves the clock: the earliest instant at which another one goes on that waits for it. One whose
// instant has come is woken.
std::uint64_t asked_by_others();
// A thread has left MPI: who waits for the clock looks whether it can move it.
void tell_those_who_ask();

// What no thread takes longer for than this does not happen: one that is to move the clock, or that is to go on.
inline constexpr std::uint64_t clock_patience_ns = 1'000'000'000;

}  // namespace dryfly::preload
