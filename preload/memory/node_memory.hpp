// What the MPI library copies, and what that costs the rank: the time that a core of the machine needs for it. With
// `--on-node shared` the ranks of a node talk through memory, so that a copy to or from there also tells the conductor
// that this rank may have written something that another one waits for.
//
// A copy is seen where the MPI library calls memcpy, memmove or process_vm_readv: these three, and mmap, which says
// where the memory of the node lies, are replaced in the library's table of foreign functions, and nowhere else: what
// the program copies is its own compute time.
//
// That there was a copy is noted in every run: a library that copies between two polls which found nothing is at work
// of its own (Polls::take_free_poll).
//
// Left out: copies that the library makes without calling one of them (flags, words).
#pragma once

namespace dryfly::preload {

// Do the ranks of a node share memory in this run?
bool nodes_share_memory();

// Replaces the functions, once. Before MPI is initialised.
void watch_copies();

}  // namespace dryfly::preload
