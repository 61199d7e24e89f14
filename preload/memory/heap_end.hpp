// Where the program's next memory begins within a page.
//
// Which buffers share a page decides how many the NIC has to be told of (docs/model/registration.md), and an MPI library
// that starts leaves behind some bytes more or fewer than the last time: Open MPI has a thread of its own meanwhile. So
// at the end of MPI_Init the heap goes on at the beginning of a page.
#pragma once

namespace dryfly::preload {

// For the C library's own allocator; with another one nothing comes of it.
void align_heap_end();

}  // namespace dryfly::preload
