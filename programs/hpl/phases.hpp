// Where the time goes: seconds by phase, for each step of the factorisation and in all.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

namespace dryfly::hpl {

enum class Phase { panel, broadcast, swap, trsm, gemm };
constexpr int kPhases = 5;
constexpr std::array<const char*, kPhases> kPhaseNames = {"panel", "broadcast", "swap", "trsm", "gemm"};

struct StepTimes {
  std::array<double, kPhases> phase{};
  double wall = 0;
};

// Adds the time from its construction to its end to one phase.
class Timed {
 public:
  Timed(StepTimes& times, Phase phase) : seconds_(times.phase[static_cast<std::size_t>(phase)]) {}
  ~Timed() { seconds_ += MPI_Wtime() - begin_; }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& seconds_;
  double begin_ = MPI_Wtime();
};

}  // namespace dryfly::hpl
