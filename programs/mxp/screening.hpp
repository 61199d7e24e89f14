// What each rank can do with the kernel that the run takes; otherwise as dryfly-hpl (programs/hpl/screen.hpp).
#pragma once

#include "../hpl/matrix.hpp"
#include "../hpl/screen.hpp"
#include "kernel.hpp"

namespace dryfly::mxp {

// A product of the kernel, as large as the one that dryfly-hpl screens with.
class Probe {
 public:
  Probe(Kernel& kernel, std::int64_t block);
  bool allocated() const;
  void multiply() const;

 private:
  Kernel& kernel_;
  std::int64_t block_;
  hpl::Doubles plain_, left_, right_, c_;
};

// Collective.
hpl::Screening screen(Kernel& kernel, std::int64_t block, MPI_Comm where);

}  // namespace dryfly::mxp
