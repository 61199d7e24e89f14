// How a rank says why it goes no further: all ranks of a run may come to it at once, and one is to speak. The run ends
// with the first rank that does, so whoever speaks ends first, and the launcher names the rank that the sentence is
// about. Loaded into user programs: libc only.
#pragma once

namespace dryfly::rank {

inline constexpr int exit_of_refusal = 2;

// Whether this process is the one of its run that speaks of `about`, a word; true outside a run. It keeps that name
// for as long as it lives.
bool speaks_for_run(const char* about);

// For who has spoken and ends: until then others find the name taken.
void wait_for_others_to_ask();

// Ends the process, which has spoken or leaves that to another one.
[[noreturn]] void end_refused(bool has_spoken);

}  // namespace dryfly::rank
