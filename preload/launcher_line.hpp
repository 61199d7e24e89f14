// What a rank tells dryfly-launch of itself where another launcher has started it and serves its PMI: that it is inside
// MPI, that it has left it, that it aborts. dryfly-launch sees that otherwise in its own PMI server. One connection to
// the socket in DRYFLY_LAUNCH for each line; launch/foreign.hpp has the lines. Without that variable nothing is said.
#pragma once

namespace dryfly::preload {

void tell_launcher(const char* word);
void tell_launcher(const char* word, int code);

// To dryfly-launch's PMI server where it serves this rank, before the MPI library speaks to it and when MPI_Finalize
// has come back: launch/pmi.hpp says why.
enum class PmiWord { watched, left };
void tell_pmi_server(PmiWord word);

}  // namespace dryfly::preload
