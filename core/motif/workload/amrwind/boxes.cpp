#include "core/motif/workload/amrwind/boxes.hpp"

#include <algorithm>
#include <numeric>

namespace dryfly::motif::amrwind {
namespace {

// Spans of one axis, as AMReX's maxSize has them: powers of two that the length and the longest have in common stay
// together, and the first spans take what is over.
std::vector<std::uint32_t> spans(std::uint32_t length, std::uint32_t longest) {
  std::uint32_t unit = 1;
  std::uint32_t units = length;
  std::uint32_t most = longest;
  while (length > longest && most % 2 == 0 && units % 2 == 0) {
    unit *= 2;
    units /= 2;
    most /= 2;
  }
  const std::uint32_t pieces = length > longest ? (units + most - 1) / most : 1;
  std::vector<std::uint32_t> cuts;
  for (std::uint32_t piece = 0; piece <= pieces; ++piece) {
    cuts.push_back((piece * (units / pieces) + std::min(piece, units % pieces)) * unit);
  }
  return cuts;
}

// Whether the highest bit that two differ in is lower.
bool differs_lower(std::uint32_t left, std::uint32_t right) { return left < right && left < (left ^ right); }

bool before_on_curve(const Triple& left, const Triple& right) {
  // Of two axes that differ in the same bit, the later one counts.
  std::size_t axis = 2;
  for (const std::size_t other : {std::size_t{1}, std::size_t{0}}) {
    if (differs_lower(left[axis] ^ right[axis], left[other] ^ right[other])) axis = other;
  }
  return left[axis] < right[axis];
}

}  // namespace

std::uint64_t Boxes::cells_of(std::uint32_t box) const {
  const Triple place = place_of(box);
  std::uint64_t cells = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) cells *= cuts[axis][place[axis] + 1] - cuts[axis][place[axis]];
  return cells;
}

std::uint64_t Boxes::cells() const { return std::uint64_t{cuts[0].back()} * cuts[1].back() * cuts[2].back(); }

Boxes Boxes::even(const Triple& sides, const Triple& cells) {
  Boxes boxes;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (std::uint32_t place = 0; place <= sides[axis]; ++place) boxes.cuts[axis].push_back(place * cells[axis]);
  }
  boxes.distribute(boxes.count());
  return boxes;
}

Boxes Boxes::of_domain(const Triple& domain, std::uint32_t longest, std::uint32_t ranks) {
  Boxes boxes;
  for (std::size_t axis = 0; axis < 3; ++axis) boxes.cuts[axis] = spans(domain[axis], longest);
  boxes.distribute(ranks);
  return boxes;
}

Boxes Boxes::coarsened() const {
  Boxes coarse = *this;
  for (std::vector<std::uint32_t>& axis : coarse.cuts) {
    for (std::uint32_t& cut : axis) cut /= 2;
  }
  return coarse;
}

bool Boxes::can_be_halved(std::uint32_t least_side) const {
  return std::ranges::all_of(cuts, [&](const std::vector<std::uint32_t>& axis) {
    for (std::size_t span = 0; span + 1 < axis.size(); ++span) {
      if (axis[span + 1] % 2 != 0 || axis[span + 1] - axis[span] < 2 * least_side) return false;
    }
    return true;
  });
}

// As even as can be in cells, in the curve's order: a rank takes boxes until it has its share, and leaves the last one
// to the next where all up to it would have more than theirs.
void Boxes::distribute(std::uint32_t ranks) {
  std::vector<std::uint32_t> curve(count());
  std::iota(curve.begin(), curve.end(), 0);
  const auto corner = [&](std::uint32_t box) {
    const Triple place = place_of(box);
    return Triple{cuts[0][place[0]], cuts[1][place[1]], cuts[2][place[2]]};
  };
  std::ranges::sort(
      curve, [&](std::uint32_t left, std::uint32_t right) { return before_on_curve(corner(left), corner(right)); });
  const double share = static_cast<double>(cells()) / ranks;
  owners.assign(count(), ranks - 1);
  double total = 0;
  std::size_t next = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    double taken = 0;
    std::size_t number = 0;
    for (; next < curve.size() && (rank + 1 == ranks || taken < share); ++next, ++number) {
      taken += static_cast<double>(cells_of(curve[next]));
      owners[curve[next]] = rank;
    }
    total += taken;
    if (total / (rank + 1) > share && number > 1 && rank + 1 < ranks) {
      --next;
      total -= static_cast<double>(cells_of(curve[next]));
    }
  }
}

Traffic::Overlaps Traffic::overlaps(const std::vector<std::uint32_t>& from, const std::vector<std::uint32_t>& to,
                                    std::uint32_t depth, bool nodal, bool closed) {
  const std::int64_t length = to.back();
  const std::int64_t more = nodal ? 1 : 0;
  Overlaps all(to.size() - 1);
  for (std::size_t mine = 0; mine + 1 < to.size(); ++mine) {
    const std::int64_t first = to[mine];
    const std::int64_t last = to[mine + 1] + more;
    for (std::int64_t shift = closed ? -length : 0; shift <= (closed ? length : 0); shift += length) {
      for (std::size_t other = 0; other + 1 < from.size(); ++other) {
        const std::int64_t begin = std::max(from[other] + shift, first - depth);
        const std::int64_t end = std::min(from[other + 1] + more + shift, last + depth);
        if (begin >= end) continue;
        const std::int64_t own = std::max(std::min(end, last) - std::max(begin, first), std::int64_t{0});
        all[mine].push_back({.from = static_cast<std::uint32_t>(other),
                             .all = static_cast<std::uint32_t>(end - begin),
                             .own = static_cast<std::uint32_t>(own)});
      }
    }
  }
  return all;
}

void Traffic::add(std::vector<Gathered>& gathered, const Gathered& more) {
  for (Gathered& one : gathered) {
    if (one.from != more.from) continue;
    one.points += more.points;
    one.behind_faces += more.behind_faces;
    return;
  }
  gathered.push_back(more);
}

template <typename GatherBox>
Traffic Traffic::of(const Boxes& to, std::uint32_t ranks, bool crosswise, const GatherBox& gather_box) {
  std::vector<std::uint32_t> by_owner(to.count());
  std::iota(by_owner.begin(), by_owner.end(), 0);
  std::ranges::stable_sort(by_owner, {}, [&](std::uint32_t box) { return to.owners[box]; });
  Traffic traffic;
  traffic.received_from_.push_back(0);
  std::size_t next = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Gathered> gathered;
    for (; next < by_owner.size() && to.owners[by_owner[next]] == rank; ++next) gather_box(gathered, by_owner[next]);
    std::ranges::sort(gathered, {}, &Gathered::from);
    for (const Gathered& one : gathered) {
      const std::uint64_t points = crosswise && one.behind_faces > 0 ? one.behind_faces : one.points;
      if (one.from == rank || points == 0) continue;
      traffic.received_.push_back({.peer = one.from, .points = static_cast<std::uint32_t>(points)});
    }
    traffic.received_from_.push_back(static_cast<std::uint32_t>(traffic.received_.size()));
  }
  traffic.list_sent(ranks);
  return traffic;
}

void Traffic::list_sent(std::uint32_t ranks) {
  sent_from_.assign(ranks + std::size_t{1}, 0);
  for (const Message& message : received_) ++sent_from_[message.peer + std::size_t{1}];
  std::partial_sum(sent_from_.begin(), sent_from_.end(), sent_from_.begin());
  std::vector<std::uint32_t> next = sent_from_;
  sent_.resize(received_.size());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const Message& message : received_by(rank)) {
      sent_[next[message.peer]++] = {.peer = rank, .points = message.points};
    }
  }
}

void Traffic::gather(std::vector<Gathered>& gathered, const Boxes& from,
                     const std::array<const std::vector<Overlap>*, 3>& axes) {
  for (const Overlap& z : *axes[2]) {
    for (const Overlap& y : *axes[1]) {
      for (const Overlap& x : *axes[0]) {
        const std::uint64_t all = std::uint64_t{x.all} * y.all * z.all;
        const std::uint64_t own = std::uint64_t{x.own} * y.own * z.own;
        const std::uint64_t behind_faces = std::uint64_t{x.all - x.own} * y.own * z.own +
                                           std::uint64_t{y.all - y.own} * x.own * z.own +
                                           std::uint64_t{z.all - z.own} * x.own * y.own;
        add(gathered, {.from = from.owners[from.at({x.from, y.from, z.from})],
                       .points = all - own,
                       .behind_faces = behind_faces});
      }
    }
  }
}

Traffic Traffic::ghosts(const Boxes& boxes, std::uint32_t ranks, std::uint32_t depth, const Nodal& nodal,
                        bool crosswise, const Closed& closed) {
  std::array<Overlaps, 3> axes;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    axes[axis] = overlaps(boxes.cuts[axis], boxes.cuts[axis], depth, nodal[axis], closed[axis]);
  }
  return of(boxes, ranks, crosswise, [&](std::vector<Gathered>& gathered, std::uint32_t box) {
    const Triple place = boxes.place_of(box);
    gather(gathered, boxes, {&axes[0][place[0]], &axes[1][place[1]], &axes[2][place[2]]});
  });
}

Traffic Traffic::copies(const Boxes& from, const Boxes& to, std::uint32_t ranks, const Nodal& nodal) {
  std::array<Overlaps, 3> axes;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    axes[axis] = overlaps(from.cuts[axis], to.cuts[axis], 0, nodal[axis], false);
    // All of it is wanted, though it lies in the receiver's box.
    for (std::vector<Overlap>& span : axes[axis]) {
      for (Overlap& overlap : span) overlap.own = 0;
    }
  }
  return of(to, ranks, false, [&](std::vector<Gathered>& gathered, std::uint32_t box) {
    const Triple place = to.place_of(box);
    gather(gathered, from, {&axes[0][place[0]], &axes[1][place[1]], &axes[2][place[2]]});
  });
}

Traffic Traffic::shared_points(const Boxes& boxes, std::uint32_t ranks, const Closed& closed) {
  // Along an axis, whose the first point of a span is, those within, and the last. Numbers of boxes grow along each
  // axis, so that the owner is found for each by itself.
  struct Kind {
    std::uint32_t owner;
    std::uint32_t points;
  };
  const auto kinds = [&](std::size_t axis, std::uint32_t span) {
    const std::uint32_t side = boxes.along(axis);
    const std::uint32_t within = boxes.cuts[axis][span + std::size_t{1}] - boxes.cuts[axis][span] - 1;
    const bool wraps = closed[axis] && span + 1 == side;
    return std::array<Kind, 3>{Kind{.owner = span == 0 ? 0 : span - 1, .points = 1},
                               Kind{.owner = span, .points = within}, Kind{.owner = wraps ? 0 : span, .points = 1}};
  };
  return of(boxes, ranks, false, [&](std::vector<Gathered>& gathered, std::uint32_t box) {
    const Triple place = boxes.place_of(box);
    for (const Kind& z : kinds(2, place[2])) {
      for (const Kind& y : kinds(1, place[1])) {
        for (const Kind& x : kinds(0, place[0])) {
          const std::uint32_t owner = boxes.at({x.owner, y.owner, z.owner});
          if (owner == box) continue;
          add(gathered, {.from = boxes.owners[owner],
                         .points = std::uint64_t{x.points} * y.points * z.points,
                         .behind_faces = 0});
        }
      }
    }
  });
}

}  // namespace dryfly::motif::amrwind
