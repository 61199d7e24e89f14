// The record of a rank's MPI calls, DIRECTORY/calls-N.bin, for `dryfly run --trace`: an 8-byte name of the format, then
// a CallRecord for each outermost call, in the byte order of the machine. Written only when DRYFLY_CALL_RECORD names a
// directory; it costs no virtual time, and nothing at all otherwise but a look at a flag.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::preload {

struct CallRecord {
  std::uint64_t entered_ps;
  std::uint64_t left_ps;
  std::uint64_t waited_ps;  // of all threads since the first of them entered
  std::uint64_t bytes;
  std::uint64_t call;  // index of mpi_calls.def
};

void open_call_record();
bool calls_are_recorded();
void record_call(const CallRecord& record);
// Writes what is left. A disk that is full is reported on stderr, once, and the file removed.
void close_call_record();

}  // namespace dryfly::preload
