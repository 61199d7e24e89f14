// The memory by which the ranks of a node talk to one another inside the MPI library (`--on-node shared`), and what
// copying to and from it costs them.
//
// Such a copy takes the time that a core of the machine needs for it, and tells the conductor that this rank may have
// written something that another one waits for. It is seen where the MPI library calls memcpy, memmove or
// process_vm_readv: these three, and mmap, which says where that memory lies, are replaced in the library's table of
// foreign functions, and nowhere else: what the program copies is its own compute time.
//
// Left out: copies that the library makes without calling one of them (flags, words).
#pragma once

namespace dryfly::preload {

// Do the ranks of a node share memory in this run?
bool nodes_share_memory();

// Replaces the functions, once. Before MPI is initialised.
void watch_node_memory();

}  // namespace dryfly::preload
