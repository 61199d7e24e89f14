// The clock that libfabric's lnx reads (LINKx with several NICs). The first time that it sends to a peer it draws one
// of the peer's NICs, with the nanoseconds of the clock as the seed, so that ranks differ. With the real clock no such
// run repeats. Here it sees the rank's virtual instant, on a clock that began at another moment for each rank, as those
// of real nodes did: by DRYFLY_LINKED, which holds the run's seed and says that lnx is in use.
//
// Left out: whatever else in libfabric reads a clock sees this one too; with our providers below lnx nothing does but
// waits with a time-out, which Open MPI does not use.
#pragma once

#include <time.h>

namespace dryfly::preload {

// Does lnx read this clock? Then `to` has what it sees.
bool read_by_lnx(clockid_t clock, const void* return_address, timespec* to);

}  // namespace dryfly::preload
