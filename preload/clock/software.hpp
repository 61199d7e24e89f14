// The preload's part of what the MPI library's own code costs (rank/software.hpp): the table of costs is read here, and
// an MPI call begins and ends it. Under `dryfly mpi measure` this writes down what each interval took instead.
#pragma once

#include <cstdint>

namespace dryfly::preload {

// Is there a table, or a record to be made?
bool software_is_charged();
// The library has copied so many bytes of its own accord; nothing within the provider.
void charge_copied(std::uint64_t bytes);

// Reads the table that DRYFLY_SOFTWARE names, or opens the record in the folder that DRYFLY_SOFTWARE_RECORD names. One
// that cannot be read ends the process with a sentence: the run would cost less in silence.
void open_software();
// Of the outermost MPI call, `index` of mpi_calls.def.
void begin_software(std::uint32_t index);
void end_software();
// The record is complete.
void close_software();

}  // namespace dryfly::preload
