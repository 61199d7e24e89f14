// The wrappers around MPI_ functions: forwarded as machine words to PMPI_, the outermost ones accounted for in virtual
// time. mpi_calls.cpp makes them from mpi_calls.def; mpi_life.cpp has the few that begin or end a rank.
#pragma once

#include <cstdint>

namespace dryfly::preload {

// Position of each function in mpi_calls.def.
enum class Call : std::uint32_t {
#define DRYFLY_MPI_CALL(name, arguments, mode, bytes) name,
#define DRYFLY_MPI_LIFE(name, arguments) name,
#include "preload/mpi/mpi_calls.def"
#undef DRYFLY_MPI_LIFE
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

 private:
  __attribute__((tls_model("initial-exec"))) static thread_local constinit std::uint32_t depth_;
  bool outermost_;
};

}  // namespace dryfly::preload
