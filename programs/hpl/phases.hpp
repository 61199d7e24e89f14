// Where the time goes: seconds by phase, for each step of the factorisation and in all.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

namespace dryfly::hpl {

// The last two are copies of a matrix that lies in GPUs' memory; then trsm is the launch of those kernels, and gemm
// what a process waits for its GPU's kernels.
enum class Phase { panel, broadcast, swap, trsm, gemm, to_host, to_gpu };
constexpr int kPhases = 7;
constexpr int kHostPhases = 5;
constexpr std::array<const char*, kPhases> kPhaseNames = {"panel", "broadcast", "swap",  "trsm",
                                                          "gemm",  "to_host",   "to_gpu"};

struct StepTimes {
  std::array<double, kPhases> phase{};
  double wall = 0;
};

static_assert(sizeof(StepTimes) == (kPhases + 1) * sizeof(double), "sent as doubles");

// The times of all processes: of each step the most and the mean, and the mean's sum over the steps.
struct StepSummary {
  std::vector<StepTimes> most, mean;
  StepTimes total;
};

inline StepSummary summarise(const std::vector<StepTimes>& mine, MPI_Comm all) {
  StepSummary summary{mine, mine, {}};
  const int count = static_cast<int>(mine.size()) * (kPhases + 1);
  int processes = 1;
  MPI_Comm_size(all, &processes);
  MPI_Allreduce(MPI_IN_PLACE, summary.most.data(), count, MPI_DOUBLE, MPI_MAX, all);
  MPI_Allreduce(MPI_IN_PLACE, summary.mean.data(), count, MPI_DOUBLE, MPI_SUM, all);
  for (StepTimes& step : summary.mean) {
    step.wall /= processes;
    summary.total.wall += step.wall;
    for (std::size_t i = 0; i < kPhases; ++i) summary.total.phase[i] += step.phase[i] /= processes;
  }
  return summary;
}

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
