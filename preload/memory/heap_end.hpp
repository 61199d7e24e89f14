// Where the program's next memory begins within a page.
//
// Which buffers share a page decides how many the NIC has to be told of (docs/model/registration.md), and an MPI
// library that starts leaves them in other places when it was set otherwise, and Open MPI, which has a thread of its
// own meanwhile, each time. So at the end of MPI_Init what is free of the heap is used up, some 150 KiB, and the heap
// goes on at the beginning of a page.
#pragma once

namespace dryfly::preload {

// For the C library's own allocator; with another one nothing comes of it.
void align_heap_end();

}  // namespace dryfly::preload
