// What a copy to or from memory that the ranks of a node share takes a rank, as the conductor has it of end-points that
// share memory (core/nic/node_memory.hpp): by how far the core is that has what is copied, or else by where it is in
// the mean. Models docs/model/on-node.md#places.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "core/memory/written.hpp"

namespace dryfly::preload {

// The rank writes so many bytes, or reads what others have written there.
void charge_written(std::size_t bytes);
void charge_read(const SharedPiece& piece, std::size_t bytes);
// The kernel has read them out of another process's memory: from that address on, and so many pieces of them.
void charge_read_of(pid_t process, std::uint64_t from, const iovec* pieces, std::size_t count, std::size_t bytes);
// The rank's own memory has them from now on.
void note_placed(const void* target, std::size_t bytes);
// What lies there is this rank's from now on.
void note_writer(const SharedPiece& piece, std::size_t bytes);

}  // namespace dryfly::preload
