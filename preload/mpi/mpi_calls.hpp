// The wrappers around MPI_ and PMPI_ functions: forwarded as machine words to the library's PMPI_, the outermost ones
// accounted for in virtual time. An MPI_ function that a tool defines behind the preload is the tool's (Tool).
// mpi_calls.cpp makes them from mpi_calls.def; mpi_life.cpp has the few that begin or end a rank.
#pragma once

#include <cstdint>

#include "rank/self.hpp"

namespace dryfly::preload {

// Position of each function in mpi_calls.def.
enum class Call : std::uint32_t {
#define DRYFLY_MPI_CALL(name, arguments, mode, bytes) name,
#define DRYFLY_MPI_EXTENSION(name, arguments, mode) X_##name,
#define DRYFLY_MPI_LIFE(name, arguments) name,
#include "preload/mpi/mpi_calls.def"
#undef DRYFLY_MPI_LIFE
#undef DRYFLY_MPI_EXTENSION
#undef DRYFLY_MPI_CALL
};

// Counts how deep this thread is inside MPI_ functions.
class Nesting {
 public:
  Nesting() { outermost_ = depth_++ == 0; }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  bool outermost() const { return outermost_; }
  // Is this thread inside an MPI function?
  static bool inside() { return depth_ != 0; }

 private:
  __attribute__((tls_model("initial-exec"))) static thread_local constinit std::uint32_t depth_;
  bool outermost_;
};

// What surrounds a call that is accounted for: a call to the process manager is outside virtual time, any other takes
// its turn among the ranks of its node, if these talk through memory.
void begin_call(rank::CallMode mode);
void end_call(rank::CallMode mode);

}  // namespace dryfly::preload
