// How much memory the solvers may take.
#pragma once

namespace dryfly::hpl {

// Bytes for all ranks of MPI_COMM_WORLD together, if each takes the same. Ranks share what the kernel below them has,
// which for simulated nodes is one and the same. Collective; infinity where the kernel does not say.
double usable_bytes(int ranks);

}  // namespace dryfly::hpl
