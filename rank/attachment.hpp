// How a process joins its run, or a served fabric: it greets the conductor over a socket and maps the segment that it
// is given.
#pragma once

#include <cstdint>

#include "wire/wire.hpp"

namespace dryfly::rank {

// What a process has of its run; the same from the greeting to its end.
struct Attachment {
  wire::Welcome welcome{};
  int socket = -1;
  int segment = -1;  // what was its descriptor, see segment_descriptor()
  char* base = nullptr;
  wire::SegmentHeader* header = nullptr;
  wire::RankPage* page = nullptr;

  char* command_ring() const { return reinterpret_cast<char*>(page) + sizeof(wire::RankPage); }
  char* event_ring() const { return command_ring() + header->command_ring_bytes; }
  // -1: the program has closed it since; another file may have its number.
  int segment_descriptor() const;
};

// As rank DRYFLY_RANK or PMI_RANK of the run DRYFLY_CHANNEL, or as the next process on node DRYFLY_NODE of the served
// fabric DRYFLY_FABRIC. False when the environment names neither, or when the conductor refused; why is on stderr.
bool attach(Attachment& made);

}  // namespace dryfly::rank
