// Has the program made threads of its own? MPI libraries and what they stand on make helper threads too, but those
// never call MPI.
#pragma once

namespace dryfly::preload {

bool program_has_threads();

}  // namespace dryfly::preload
