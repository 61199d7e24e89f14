// Boxes of cells as AMReX makes them, whose ranks they are, and what ranks send each other for them.
//
// A domain is cut along each axis, so that a box is one span of each. Ranks get boxes along a Morton curve through
// their first cells (DistributionMapping's SFC). What is exchanged goes in one message to each rank, all boxes
// together: ghost points (FillBoundary), points that several boxes have and one of them owns (OverrideSync), and copies
// to boxes that lie otherwise (ParallelCopy). Models docs/model/skeleton-amrwind.md#grids and
// docs/model/skeleton-amrwind.md#exchanges.
//
// Left out: refined levels, and boxes that do not fill the domain.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace dryfly::motif::amrwind {

using Triple = std::array<std::uint32_t, 3>;
// Along each axis: points lie on the faces between cells, and the neighbouring boxes have them too.
using Nodal = std::array<bool, 3>;
using Closed = std::array<bool, 3>;

struct Boxes {
  std::array<std::vector<std::uint32_t>, 3> cuts;  // the first cell of each span, and behind them the domain's end
  std::vector<std::uint32_t> owners;               // rank of each box, x running fastest

  std::uint32_t along(std::size_t axis) const { return static_cast<std::uint32_t>(cuts[axis].size() - 1); }
  std::uint32_t count() const { return along(0) * along(1) * along(2); }
  Triple place_of(std::uint32_t box) const {
    return {box % along(0), box / along(0) % along(1), box / along(0) / along(1)};
  }
  std::uint32_t at(const Triple& place) const { return place[0] + along(0) * (place[1] + along(1) * place[2]); }
  std::uint64_t cells_of(std::uint32_t box) const;
  std::uint64_t cells() const;

  // One for each rank, all of one size.
  static Boxes even(const Triple& sides, const Triple& cells);
  // As large as can be, but no side above `longest`, of a domain of so many cells.
  static Boxes of_domain(const Triple& domain, std::uint32_t longest, std::uint32_t ranks);
  // The same with every other cut-off cell: cells of twice the size. All sides have to be even.
  Boxes coarsened() const;
  bool can_be_halved(std::uint32_t least_side) const;

 private:
  void distribute(std::uint32_t ranks);
};

// What one exchange sends, in points.
class Traffic {
 public:
  struct Message {
    std::uint32_t peer;
    std::uint32_t points;
  };
  // From the first message of a rank to behind its last.
  struct Range {
    const Message* first;
    const Message* last;
    const Message* begin() const { return first; }
    const Message* end() const { return last; }
    bool empty() const { return first == last; }
  };

  // Points around each box, `depth` deep. Crosswise: only those behind faces are wanted, and a rank that has none of
  // them but others sends these.
  static Traffic ghosts(const Boxes& boxes, std::uint32_t ranks, std::uint32_t depth, const Nodal& nodal,
                        bool crosswise, const Closed& closed);
  // Points of the surfaces of boxes, from the box with the least number of those that have them to the others.
  static Traffic shared_points(const Boxes& boxes, std::uint32_t ranks, const Closed& closed);
  // All points of `from` to where they lie in `to`, a domain of as many cells.
  static Traffic copies(const Boxes& from, const Boxes& to, std::uint32_t ranks, const Nodal& nodal);

  // By peer, ascending.
  Range sent_by(std::uint32_t rank) const { return range(sent_, sent_from_, rank); }
  Range received_by(std::uint32_t rank) const { return range(received_, received_from_, rank); }

 private:
  // Between two boxes along an axis: points that they have in common, and how many of these are the receiver's own.
  struct Overlap {
    std::uint32_t from;
    std::uint32_t all;
    std::uint32_t own;
  };
  using Overlaps = std::vector<std::vector<Overlap>>;  // of each span that receives
  // To a box, from each other rank.
  struct Gathered {
    std::uint32_t from;
    std::uint64_t points;
    std::uint64_t behind_faces;
  };

  static Range range(const std::vector<Message>& all, const std::vector<std::uint32_t>& from, std::uint32_t rank) {
    return {.first = all.data() + from[rank], .last = all.data() + from[rank + std::size_t{1}]};
  }
  static Overlaps overlaps(const std::vector<std::uint32_t>& from, const std::vector<std::uint32_t>& to,
                           std::uint32_t depth, bool nodal, bool closed);
  static void add(std::vector<Gathered>& gathered, const Gathered& more);
  static void gather(std::vector<Gathered>& gathered, const Boxes& from,
                     const std::array<const std::vector<Overlap>*, 3>& axes);
  // `gather_box` adds to the list what a box of `to` gets.
  template <typename GatherBox>
  static Traffic of(const Boxes& to, std::uint32_t ranks, bool crosswise, const GatherBox& gather_box);
  void list_sent(std::uint32_t ranks);

  std::vector<Message> sent_;
  std::vector<Message> received_;
  std::vector<std::uint32_t> sent_from_;
  std::vector<std::uint32_t> received_from_;
};

}  // namespace dryfly::motif::amrwind
