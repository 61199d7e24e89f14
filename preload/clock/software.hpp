// The preload's part of what the MPI library's own code costs (rank/software.hpp): the table of costs is read here, and
// an MPI call begins and ends it. Under `dryfly mpi measure` this writes down what each interval took instead.
#pragma once

#include <cstdint>

#include "wire/wire.hpp"

namespace dryfly::preload {

// Is there a table, or a record to be made?
bool software_is_charged();
// Is what the library executes in call `index` of mpi_calls.def charged or written down?
bool software_is_charged_in(std::uint32_t index);
// The call that comes next waits for such a schedule (preload/mpi/schedules.hpp), or adds up so many bytes by itself.
void software_is_of(wire::Schedule schedule, std::uint64_t added_bytes);
bool software_is_recorded();
// The call that comes next reduces so; written down if it is an MPI_Reduce_local.
void record_reduction(const char* type, const char* operation, std::uint64_t bytes);
// rank::ReductionCost::scale; 0 for a pair of names that has not been counted.
std::uint32_t reduction_scale(const char* type, const char* operation);
// It has come to a copy of so many bytes to or from memory that the node shares: a boundary.
void reach_node_memory(std::uint64_t bytes);
// The library has copied so many bytes of its own accord; nothing within the provider.
void charge_copied(std::uint64_t bytes);

// Reads the table that DRYFLY_SOFTWARE names, or opens the record in the folder that DRYFLY_SOFTWARE_RECORD names. One
// that cannot be read ends the process with a sentence: the run would cost less in silence.
void open_software();
// Of the outermost MPI call, `index` of mpi_calls.def.
void begin_software(std::uint32_t index);
void end_software();
// Right before the library is entered, and right behind it: what runs in between is counted.
void begin_counting();
void end_counting();
// The record is complete.
void close_software();

}  // namespace dryfly::preload
