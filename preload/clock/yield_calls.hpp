// The turns that threads of a rank take in the MPI library (yield_calls.cpp).
#pragma once

namespace dryfly::preload {

// This thread has done in the library what it could for now: others that wait for theirs may go on.
void end_turn();

}  // namespace dryfly::preload
