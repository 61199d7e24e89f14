// The state at a boundary between two panels, kept in files, so that a run that was interrupted goes on from there and
// ends with the same bits.
//
// Every process writes a file of its own, FOLDER/NAME-STEP-RANK; when all are complete the first process says in
// FOLDER/NAME-current which step counts, and the files before it are removed. So there is always a complete set.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace dryfly::hpl {

struct CheckpointOptions {
  std::string folder;  // empty: none is kept
  double every = 600;  // seconds; 0: after each step
  bool restart = false;
};

// What can be kept between two steps.
class Checkpointed {
 public:
  virtual ~Checkpointed() = default;
  virtual void settle() = 0;  // nothing is under way any more

  // Everything that step `next_step` needs, to or from a file; false if `transfer` fails.
  using Transfer = std::function<bool(void* data, std::size_t bytes)>;
  virtual bool transfer_state(std::int64_t next_step, const Transfer& transfer) = 0;
};

class Checkpoint {
 public:
  // `name` begins the files' names. `about` is what must be the same when the run goes on: the case, the seed and the
  // BLAS.
  Checkpoint(const CheckpointOptions& options, MPI_Comm where, std::string name, std::string about);

  // Where the run goes on, having read the state; 0 if there is nothing kept. Throws BadInput if it is of another run.
  std::int64_t restore(Checkpointed& state);

  // After a step, on all processes: keeps the state if it is time.
  void after_step(std::int64_t next_step, Checkpointed& state);

  // The run is complete, so nothing is to be gone on with.
  void remove();

  double seconds_before() const { return seconds_before_; }  // of the run until it was interrupted

 private:
  std::string file(std::int64_t step) const;
  std::string current() const { return options_.folder + "/" + name_ + "-current"; }
  void remove_all_but(std::int64_t step) const;
  bool all_agree(bool mine) const;

  CheckpointOptions options_;
  MPI_Comm where_;
  std::string name_, about_;
  int rank_ = 0;
  std::int64_t kept_ = 0;
  double begin_ = 0, last_ = 0, seconds_before_ = 0;
};

}  // namespace dryfly::hpl
