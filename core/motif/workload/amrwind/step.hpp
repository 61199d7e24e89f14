// One time step of AMR-Wind as a list of what each rank does: halos and copies, sums, computing. Parts that are alike
// are one, so that a sample can run each once.
//
// Models the step of an atmospheric boundary layer and AMReX's multigrid (docs/model/skeleton-amrwind.md).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/motif/workload/amrwind/boxes.hpp"

namespace dryfly::motif::amrwind {

// A solve: V-cycles, and in each of them half iterations of BiCGStab on the coarsest level; 0: as many as the operator
// asks for where that level is as wide as it is (docs/model/skeleton-amrwind.md#the-coarsest-level).
struct Solve {
  std::uint64_t cycles = 1;
  std::uint64_t halves = 0;
};

struct Problem {
  Triple sides{1, 1, 1};      // ranks along each axis
  Triple cells{1, 1, 1};      // of a rank
  std::uint32_t gather = 32;  // cells along a side of coarse boxes
  std::uint32_t sweeps = 4;   // of a smoothing, on nodes
  std::uint64_t advection_words = 1;
  Solve mac;
  Solve nodal;
  Solve velocity;
  Solve temperature;
};

// What a rank's time counts for.
enum class Phase : std::uint8_t { work, halos, coarse, bottom, sums };
inline constexpr std::array phase_names{"work", "halos", "coarse", "bottom", "sums"};

struct Part {
  enum class Kind : std::uint8_t { exchange, sum, bottom_sum, compute };
  Kind kind = Kind::compute;
  Phase phase = Phase::work;
  std::uint32_t what = 0;     // exchange: which traffic; compute: which level
  std::uint64_t size = 0;     // bytes: of a point sent, of a sum, moved for a point
  std::uint32_t kernels = 1;  // compute: calls that share it

  auto operator<=>(const Part&) const = default;
};

// Of the multigrid, the finest first.
class Levels {
 public:
  explicit Levels(const Problem& problem);

  std::uint32_t count() const { return static_cast<std::uint32_t>(boxes_.size()); }
  const Boxes& boxes(std::uint32_t level) const { return boxes_[level]; }
  // Cells that a rank has of a level.
  std::uint64_t cells_of(std::uint32_t level, std::uint32_t rank) const { return cells_[level][rank]; }
  // The first level whose boxes are not those of the step, or as many as there are levels.
  std::uint32_t first_gathered() const { return first_gathered_; }
  bool gathered(std::uint32_t level) const { return level >= first_gathered_; }
  // Of the coarsest level, ascending.
  const std::vector<std::uint32_t>& bottom_ranks() const { return bottom_ranks_; }
  bool at_bottom(std::uint32_t rank) const { return cells_.back()[rank] > 0; }

 private:
  std::vector<Boxes> boxes_;
  std::uint32_t first_gathered_ = 0;
  std::vector<std::vector<std::uint64_t>> cells_;
  std::vector<std::uint32_t> bottom_ranks_;
};

class Step {
 public:
  explicit Step(const Problem& problem);

  const Levels& levels() const { return levels_; }

  const std::vector<Part>& parts() const { return parts_; }
  // Numbers of parts, one behind the other.
  const std::vector<std::uint32_t>& order() const { return order_; }
  // What an exchange sends is made when it is asked for, and may be large.
  std::unique_ptr<Traffic> traffic(const Part& part) const { return makers_[part.what](); }

 private:
  struct Operator;

  enum class Form : std::uint8_t { ghosts, shared, down, up };
  // Kind, level, depth and which axes are nodal, as a number.
  using Key = std::array<std::uint32_t, 5>;

  Phase phase_of(std::uint32_t level, Phase otherwise) const;
  void add(const Part& part);
  void exchange(const Key& key, std::uint64_t bytes_of_point, Phase phase);
  void ghosts(std::uint32_t level, std::uint32_t depth, const Nodal& nodal, bool crosswise, std::uint64_t components);
  void shared(std::uint32_t level);
  void copy(Form form, std::uint32_t fine, const Nodal& nodal, std::uint64_t components);
  void sum(std::uint64_t bytes, std::uint64_t times = 1);
  void bottom_sum(std::uint64_t bytes, std::uint64_t times = 1);
  void compute(std::uint32_t level, std::uint64_t words, std::uint32_t kernels = 1);

  void fill(const Operator& how, std::uint32_t level);
  void smooth(const Operator& how, std::uint32_t level, bool from_zero);
  void residual(const Operator& how, std::uint32_t level);
  std::uint64_t halves_of(const Operator& how, const Solve& effort) const;
  void bottom(const Operator& how, std::uint64_t halves);
  void cycle(const Operator& how, std::uint64_t halves);
  void coarsen_coefficients(const Operator& how);
  void solve(const Operator& how, const Solve& effort);

  void project_faces(const Problem& problem);
  void project_nodes(const Problem& problem);
  void average(const Problem& problem);

  std::uint32_t ranks_;
  Levels levels_;
  std::vector<Part> parts_;
  std::map<Part, std::uint32_t> numbers_;
  std::vector<std::uint32_t> order_;
  std::map<Key, std::uint32_t> exchanges_;
  std::vector<std::function<std::unique_ptr<Traffic>()>> makers_;
};

}  // namespace dryfly::motif::amrwind
