// Whose code is asking? The program and its libraries live in virtual time; the MPI library, what it stands on
// (libfabric, UCX, PMIx, libevent, hwloc) and our own objects time real sockets and real processes, and must go on
// seeing real time.
//
// The answer is taken from the return address of the interposed function. Left out: a library function that ends in
// a jump to the clock (a tail call) is taken for its caller; machine code that belongs to no file (just-in-time
// compilers) counts as the program's.
#pragma once

namespace dryfly::preload {

// Does `return_address` lie in a library that lives in real time?
bool lives_in_real_time(const void* return_address);

// Forgets all answers; for when a library has been unmapped and its addresses may be given to another one.
void forget_callers();

}  // namespace dryfly::preload
