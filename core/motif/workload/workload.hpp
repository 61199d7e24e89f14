// The workloads of `dryfly predict`: what a skeleton is given, what it answers, and who they are. To add one called
// NAME, write core/motif/workload/NAME.cpp with `predict_NAME` and a line in `workloads` (workloads.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/motif/collective/collective.hpp"
#include "core/motif/job/job.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::motif {

// name=value, as given. What no one has asked for is a mistake of the user's.
class Parameters {
 public:
  // Throws SpecError where a word is none, or names one twice.
  explicit Parameters(std::span<const char* const> words);

  bool has(const std::string& name) const { return values_.contains(name); }
  // Throw SpecError where it is missing, or out of range.
  const std::string& text(const std::string& name);
  std::string text_or(const std::string& name, const std::string& usual) { return has(name) ? text(name) : usual; }
  std::uint64_t number(const std::string& name, std::uint64_t least, std::uint64_t most);
  std::uint64_t number_or(const std::string& name, std::uint64_t usual, std::uint64_t least, std::uint64_t most);
  // Of AxBxC, as it is written.
  std::array<std::uint64_t, 3> three(const std::string& name, std::uint64_t least, std::uint64_t most);
  bool flag(const std::string& name) { return number_or(name, 0, 0, 1) != 0; }
  // Throws SpecError naming what has not been asked for.
  void check_all_used() const;

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, bool> used_;
};

// What came out. Figures in base units (ps, bytes, bytes per second, counts), by name.
struct Answer {
  Duration time;           // of what the workload counts
  bool sampled = false;    // only a part has been run
  double error_bound = 0;  // of `time`, as a share, if sampled
  JobTotals totals;        // of what has been run
  std::uint64_t fingerprint = 0;
  std::vector<std::pair<std::string, Duration>> phases;  // mean over ranks
  std::vector<std::pair<std::string, double>> figures;
  std::vector<std::string> chosen;  // sentences: which algorithms a library's rules have chosen

  // Time and phases of one step, of a job that has run so many.
  void count_step_of(Job& job, std::uint64_t steps);
  // NAME_x, NAME_y and NAME_z.
  void add_sides(const std::string& name, const std::array<std::uint32_t, 3>& sides);
};

struct Tally;

enum class Level : std::uint8_t { latency, links, network };

// The machine and where the ranks are on it. Each job has engine and carriage for itself, so that a workload may run
// several, one after the other.
class Stage {
 public:
  // `part`: how long messages are divided, in bytes; where all are very long, larger parts change little and are fewer.
  // `tally`: on the levels that simulate networks runs only count what they would give one. Throws SpecError.
  Stage(const Spec& spec, Parameters& parameters, Tally* tally = nullptr);

  const Spec& spec() const { return spec_; }
  const Placement& placement() const { return placement_; }
  std::uint32_t ranks() const { return placement_.ranks(); }
  const JobCosts& costs() const { return costs_; }
  // As how many loads messages of that size are run, and how many take about a minute of a core: 20 million, or at the
  // levels that simulate packets or flows half a million.
  std::uint64_t loads(std::uint64_t messages, Bytes each) const;
  std::uint64_t affordable_loads() const;
  bool affords(std::uint64_t messages, Bytes each) const { return loads(messages, each) <= affordable_loads(); }
  // Throws SpecError where faults come or go: of a workload that is sampled nobody knows what its parts would meet.
  // `whole`: the parameter that runs all of it.
  void refuse_passing_faults(const std::string& whole = "full=1") const;
  // Runs the program on a new job and adds to the answer what that has sent; `seen` may ask the job, before it goes.
  void run(const Job::Program& program, Answer& answer, const std::function<void(Job&)>& seen) {
    run(program, answer, {}, seen);
  }
  // `prepared` may give the job phases and lanes, before it runs.
  void run(const Job::Program& program, Answer& answer, const std::function<void(Job&)>& prepared,
           const std::function<void(Job&)>& seen);
  // The messages of runs that follow are added to the list, which has to outlive them.
  void list_messages(std::vector<SentMessage>& sent) { sent_ = &sent; }
  // The same with whatever runs a job, once.
  void run(const std::function<void(Job&)>& play, Answer& answer);
  // Each program on a job of its own, all at once, on as many cores as there are. The answer does not depend on these.
  void run_side_by_side(std::span<const Job::Program> programs, Answer& answer);

 private:
  void run(const std::function<void(Job&)>& play, Answer& answer, std::uint32_t cores_each);
  void run(Job& job, const std::function<void(Job&)>& play, Answer& answer);

  const Spec& spec_;
  const Dragonfly topology_;
  const Placement placement_;
  const JobCosts costs_;
  const Noises noises_;
  const Level level_;
  const std::uint32_t cores_;
  const Bytes part_;
  Tally* const tally_;
  std::vector<SentMessage>* sent_ = nullptr;
};

struct Workload {
  std::string_view name;
  Answer (*predict)(Stage& stage, Parameters& parameters);
};

// Throws SpecError, which names those that there are.
const Workload& workload_named(std::string_view name);

// Any collective of core/motif/collective, by an algorithm that is named or chosen as a library does.
Answer predict_collective(Collective what, Stage& stage, Parameters& parameters);
Answer predict_alltoall(Stage& stage, Parameters& parameters);
Answer predict_amrwind(Stage& stage, Parameters& parameters);
Answer predict_fmm(Stage& stage, Parameters& parameters);
Answer predict_goal(Stage& stage, Parameters& parameters);
Answer predict_gpcnet(Stage& stage, Parameters& parameters);
Answer predict_graph500(Stage& stage, Parameters& parameters);
Answer predict_hacc(Stage& stage, Parameters& parameters);
Answer predict_halo(Stage& stage, Parameters& parameters);
Answer predict_mbw_mr(Stage& stage, Parameters& parameters);
Answer predict_nekbone(Stage& stage, Parameters& parameters);
Answer predict_probe(Stage& stage, Parameters& parameters);
Answer predict_wiring(Stage& stage, Parameters& parameters);
Answer predict_schedule(Stage& stage, Parameters& parameters);
Answer predict_hpcg(Stage& stage, Parameters& parameters);
Answer predict_hpl(Stage& stage, Parameters& parameters);
Answer predict_hplmxp(Stage& stage, Parameters& parameters);
Answer predict_lammps(Stage& stage, Parameters& parameters);
Answer predict_transformer(Stage& stage, Parameters& parameters);

}  // namespace dryfly::motif
