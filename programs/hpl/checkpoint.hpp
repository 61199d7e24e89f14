// The state at a boundary between two panels, kept in files, so that a run that was interrupted goes on from there and
// ends with the same bits.
//
// Every process writes a file of its own, FOLDER/hpl-STEP-RANK; when all are complete the first process says in
// FOLDER/hpl-current which step counts, and the files before it are removed. So there is always a complete set.
#pragma once

#include <cstdint>
#include <string>

#include "factor.hpp"

namespace dryfly::hpl {

struct CheckpointOptions {
  std::string folder;  // empty: none is kept
  double every = 600;  // seconds; 0: after each step
  bool restart = false;
};

class Checkpoint {
 public:
  // `about` is what must be the same when the run goes on: the case, the seed and the BLAS.
  Checkpoint(const CheckpointOptions& options, MPI_Comm where, std::string about);

  // Where the run goes on, having read the state; 0 if there is nothing kept. Throws BadInput if it is of another run.
  std::int64_t restore(Factorisation& factorisation);

  // After a step, on all processes: keeps the state if it is time.
  void after_step(std::int64_t next_step, Factorisation& factorisation);

  // The run is complete, so nothing is to be gone on with.
  void remove();

  double seconds_before() const { return seconds_before_; }  // of the run until it was interrupted

 private:
  std::string file(std::int64_t step) const;
  std::string current() const { return options_.folder + "/hpl-current"; }
  void remove_all_but(std::int64_t step) const;
  bool all_agree(bool mine) const;

  CheckpointOptions options_;
  MPI_Comm where_;
  std::string about_;
  int rank_ = 0;
  std::int64_t kept_ = 0;
  double begin_ = 0, last_ = 0, seconds_before_ = 0;
};

}  // namespace dryfly::hpl
