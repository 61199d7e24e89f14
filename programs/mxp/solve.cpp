#include "solve.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "../hpl/work.hpp"
#include "diagonal.hpp"

#define DRYFLY_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

namespace dryfly::mxp {
namespace {

constexpr double kEnough = 1.0;           // a sixteenth of HPL's threshold
constexpr int kRestart = 20;              // GMRES keeps so many vectors
constexpr int kStepsWithoutNumerics = 3;  // what classic refinement takes at N = 2,000

using Vector = std::vector<double>;

DRYFLY_WIDEST void add_columns(std::int64_t count, const Bf16* a, std::int64_t stride, const float* x, float* sums) {
  for (std::int64_t i = 0; i < count; ++i)
    sums[i] += to_float(a[i]) * x[0] + to_float(a[i + stride]) * x[1] + to_float(a[i + 2 * stride]) * x[2] +
               to_float(a[i + 3 * stride]) * x[3];
}

DRYFLY_WIDEST void add_columns(std::int64_t count, const Half* a, std::int64_t stride, const float* x, float* sums) {
  for (std::int64_t i = 0; i < count; ++i)
    sums[i] += to_float(a[i]) * x[0] + to_float(a[i + stride]) * x[1] + to_float(a[i + 2 * stride]) * x[2] +
               to_float(a[i + 3 * stride]) * x[3];
}

DRYFLY_WIDEST void add_columns(std::int64_t count, const float* a, std::int64_t stride, const float* x, float* sums) {
  for (std::int64_t i = 0; i < count; ++i)
    sums[i] += a[i] * x[0] + a[i + stride] * x[1] + a[i + 2 * stride] * x[2] + a[i + 3 * stride] * x[3];
}

// sums += A(rows, columns) x, four columns at a time.
template <class Element>
void add_product(std::int64_t rows, std::int64_t columns, const Element* a, std::int64_t stride, const float* x,
                 float* sums, hpl::WorkOf whose) {
  if (!hpl::product(rows, 1, columns, sizeof(Element) == sizeof(float) ? DRYFLY_FP32 : DRYFLY_HALF, whose)) return;
  std::int64_t j = 0;
  for (; j + 4 <= columns; j += 4) add_columns(rows, a + j * stride, stride, x + j, sums);
  for (; j < columns; ++j) {
    const float last[4] = {x[j], 0, 0, 0};
    add_columns(rows, a + j * stride, 0, last, sums);
  }
}

// One block of a triangular solve after the other: the sums of its row of the grid go to the owner of the diagonal
// block, and what that finds goes down its column, where the next sums are made.
class Triangles {
 public:
  explicit Triangles(const Factorisation& factors)
      : factors_(factors),
        store_(factors.store()),
        grid_(factors.grid()),
        gpu_(store_.gpu()),
        sums_((store_.rows().size() + 1) / 2, gpu_, hpl::Gpu::Place::device),
        x_(static_cast<std::size_t>(store_.columns().size())),
        work_(static_cast<std::size_t>(store_.block())) {
    if (gpu_ == nullptr) return;
    block_ = hpl::Doubles((store_.block() + 1) / 2, gpu_, hpl::Gpu::Place::device);
    block_on_host_ = hpl::Doubles((store_.block() + 1) / 2, gpu_, hpl::Gpu::Place::pinned);
  }

  Vector solve(const Vector& r, double scale) {
    std::vector<float> right(r.size());
    for (std::size_t i = 0; i < r.size(); ++i) right[i] = static_cast<float>(r[i] / scale);
    clear_sums();
    for (std::int64_t block = 0; block < store_.blocks(); ++block) one(block, right.data(), true);
    clear_sums();
    for (std::int64_t block = store_.blocks() - 1; block >= 0; --block) one(block, nullptr, false);
    Vector all(r.size());
    if (grid_.row() == 0)
      for (std::size_t i = 0; i < x_.size(); ++i)
        all[static_cast<std::size_t>(store_.columns().global(static_cast<std::int64_t>(i)))] = x_[i] * scale;
    sum_everywhere(all, grid_.all());
    return all;
  }

 private:
  float* sums() const { return reinterpret_cast<float*>(sums_.data()); }

  void clear_sums() {
    const auto clear = [sums = sums(), count = store_.rows().size()] { std::fill_n(sums, count, 0.0f); };
    if (gpu_ == nullptr) return clear();
    gpu_->launch(hpl::KernelWork::memory(store_.rows().size() * static_cast<std::int64_t>(sizeof(float))), clear);
  }

  // What the host may read of them.
  const float* sums_from(std::int64_t row, std::int64_t count) {
    if (gpu_ == nullptr) return sums() + row;
    gpu_->copy(block_on_host_.data(), sums() + row, static_cast<std::size_t>(count) * sizeof(float),
               hpl::Gpu::Order::among_kernels);
    gpu_->wait_for_kernels();
    return reinterpret_cast<const float*>(block_on_host_.data());
  }

  void add_block(std::int64_t from, std::int64_t to, std::int64_t place, std::int64_t n, const float* x) {
    with_element(store_.precision(), [&]<class Element>(Element*) {
      const auto* a = static_cast<const Element*>(store_.at(from, place));
      if (gpu_ == nullptr) return add_product(to - from, n, a, store_.stride(), x, sums() + from, hpl::WorkOf::fastest);
      if (to == from) return;
      gpu_->wait_for_kernels();  // the last of which may still be copying from the pinned memory
      const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
      std::memcpy(block_on_host_.data(), x, bytes);
      gpu_->copy(block_.data(), block_on_host_.data(), bytes, hpl::Gpu::Order::among_kernels);
      const int precision = sizeof(Element) == sizeof(float) ? DRYFLY_FP32 : DRYFLY_HALF;
      gpu_->launch(hpl::KernelWork::product(to - from, 1, n, precision),
                   [rows = to - from, n, a, stride = store_.stride(), x_there = block_.data(), sums = sums() + from] {
                     add_product(rows, n, a, stride, reinterpret_cast<const float*>(x_there), sums,
                                 hpl::WorkOf::kernel);
                   });
    });
  }

  // Forward x is right - sums; backward the x of before takes the place of `right`.
  void one(std::int64_t block, const float* right, bool forward) {
    const std::int64_t first = block * store_.block(), n = std::min(store_.block(), store_.order() - first);
    const int row = static_cast<int>(block % grid_.rows()), column = static_cast<int>(block % grid_.columns());
    const int count = static_cast<int>(n);
    if (grid_.row() == row) {
      const float* mine = sums_from(store_.rows().local(first), n);
      MPI_Reduce(mine, work_.data(), count, MPI_FLOAT, MPI_SUM, column, grid_.along_row());
    }
    if (grid_.column() != column) return;
    const std::int64_t place = store_.columns().local(first);
    float* x = x_.data() + place;
    if (grid_.row() == row) {
      for (std::int64_t i = 0; i < n; ++i)
        x[i] = (forward ? right[first + i] : x[i]) - work_[static_cast<std::size_t>(i)];
      const hpl::WorkOf whose = gpu_ != nullptr ? hpl::WorkOf::processors : hpl::WorkOf::fastest;
      if (hpl::product(n, 1, n, DRYFLY_FP32, whose))
        (forward ? apply_lower : apply_upper)(n, factors_.inverses(block), x);
    }
    MPI_Bcast(x, count, MPI_FLOAT, row, grid_.along_column());
    const std::int64_t from = forward ? store_.rows().below(first + n) : 0;
    const std::int64_t to = forward ? store_.rows().size() : store_.rows().below(first);
    add_block(from, to, place, n, x);
  }

  const Factorisation& factors_;
  const Store& store_;
  const hpl::Grid& grid_;
  hpl::Gpu* gpu_;
  hpl::Doubles sums_, block_, block_on_host_;  // of floats; with the matrix in a GPU's memory the last is pinned
  std::vector<float> x_, work_;
};

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

void add(Vector& target, double factor, const Vector& values) {
  for (std::size_t i = 0; i < target.size(); ++i) target[i] += factor * values[i];
}

// The small least-squares problem of GMRES, turned to triangular form column by column (Givens rotations).
class Rotations {
 public:
  explicit Rotations(double first) : right_{first} {}

  double add_column(Vector h) {  // returns the residual that is left
    for (std::size_t i = 0; i < turns_.size(); ++i) turn(turns_[i], h[i], h[i + 1]);
    const std::size_t last = turns_.size();
    const double length = std::hypot(h[last], h[last + 1]);
    turns_.push_back(length == 0 ? Turn{1, 0} : Turn{h[last] / length, h[last + 1] / length});
    turn(turns_.back(), h[last], h[last + 1]);
    right_.push_back(0);
    turn(turns_.back(), right_[last], right_[last + 1]);
    columns_.push_back(std::move(h));
    return std::fabs(right_.back());
  }

  Vector solve() const {
    Vector y(right_.begin(), right_.end() - 1);
    for (std::size_t i = y.size(); i-- > 0;) {
      for (std::size_t j = i + 1; j < y.size(); ++j) y[i] -= columns_[j][i] * y[j];
      y[i] /= columns_[i][i];
    }
    return y;
  }

 private:
  struct Turn {
    double cosine, sine;
  };
  static void turn(const Turn& by, double& a, double& b) {
    const double old = a;
    a = by.cosine * old + by.sine * b;
    b = by.cosine * b - by.sine * old;
  }

  std::vector<Turn> turns_;
  std::vector<Vector> columns_;
  Vector right_;
};

// One cycle: a correction of x for the residual r that brings its length under `wanted`, if few enough steps do. The
// preconditioned vectors are kept (flexible GMRES): made anew in FP32 from their sum they would end it at FP32.
Vector gmres_correction(const System& system, const Factorisation& factors, const Vector& r, double wanted,
                        int steps_left, int& steps) {
  const double length = std::sqrt(dot(r, r));
  std::vector<Vector> basis = {r}, preconditioned;
  for (double& value : basis[0]) value /= length;
  Rotations rotations(length);
  for (int step = 0; step < std::min(kRestart, steps_left); ++step) {
    preconditioned.push_back(apply_factors(factors, basis.back()));
    Vector w = system.product(preconditioned.back()), h;
    for (const Vector& v : basis) {
      h.push_back(dot(w, v));
      add(w, -h.back(), v);
    }
    h.push_back(std::sqrt(dot(w, w)));
    const double norm = h.back();
    ++steps;
    const double left = rotations.add_column(std::move(h));
    if (!(left > wanted) || norm == 0) break;
    for (double& value : w) value /= norm;
    basis.push_back(std::move(w));
  }
  const Vector y = rotations.solve();
  Vector correction(r.size());
  for (std::size_t i = 0; i < y.size(); ++i) add(correction, y[i], preconditioned[i]);
  return correction;
}

}  // namespace

std::vector<double> apply_factors(const Factorisation& factors, const std::vector<double>& r) {
  const double scale = hpl::numerics_skipped() ? 1.0 : largest(r);
  return scale == 0 ? Vector(r.size()) : Triangles(factors).solve(r, scale);
}

std::vector<double> difference(const System& system, const std::vector<double>& x) {
  Vector r = system.product(x);
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = system.right_side()[i] - r[i];
  return r;
}

Solution refine(const System& system, const Factorisation& factors, const RefinementOptions& options) {
  Solution solution;
  solution.x = apply_factors(factors, system.right_side());
  while (true) {
    const Vector r = difference(system, solution.x);
    const double scaled = system.scaled(r, solution.x);
    const bool falls = solution.residuals.empty() || scaled < solution.residuals.back() / 2;
    solution.residuals.push_back(scaled);
    if (hpl::numerics_skipped()) {
      solution.residuals.clear();
      if (solution.steps == kStepsWithoutNumerics) return solution;
      solution.x = apply_factors(factors, r);
      ++solution.steps;
      continue;
    }
    if (!(scaled > kEnough) || !falls || solution.steps >= options.steps_most) return solution;
    if (options.kind == Refinement::classic) {
      add(solution.x, 1.0, apply_factors(factors, r));
      ++solution.steps;
    } else {
      const double wanted = largest(r) * kEnough / scaled;
      add(solution.x, 1.0,
          gmres_correction(system, factors, r, wanted, options.steps_most - solution.steps, solution.steps));
    }
  }
}

}  // namespace dryfly::mxp
