// A mesh in pieces, one for each rank, and the exchange from one way of cutting it to another: what three-dimensional
// transforms are made of that go from boxes to pencils along each axis (LAMMPS' remap, HACC's SWFFT). Each rank sends
// to those whose new piece overlaps its old one, point to point, beginning behind itself; a send is over before the
// next one, as MPI_Send is.
//
// Of many partners a sample says how long all take. Those who are no partners of their own all begin with the same one,
// so that they stand in line before it; one after the other gets through, and from then on they go around in a row. So
// a rank sends to its first partners, and then to some in a row at another place of its list, of which the later half
// say what all take that were left out. What ranks then wait for at the end, the slowest, grows with the number of
// partners, by its root at least, if each is slow in turn, and in proportion to it at most, if it is always the same
// ones. How much these are slow of themselves is seen by what two samples at other places say of the same ranks. How
// long a copy to a partner of one's node takes depends on where that one is; since a rank copies for all of them in the
// end, a turn counts as if its copy took what it takes on the mean of them.
//
// Left out: packing, which is work and not a message.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/motif/job/rank.hpp"
#include "core/motif/job/task.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

using Triple = std::array<std::uint32_t, 3>;

struct Cut {
  // From `first` to before `last`.
  struct Span {
    std::uint64_t first;
    std::uint64_t last;
  };

  Triple points{1, 1, 1};  // of the mesh
  Triple pieces{1, 1, 1};  // along each axis
  // Pieces with numbers in a row, x running fastest, are boxes of so many; boxes are numbered with z running fastest,
  // as MPI_Cart_create does. Boxes of one piece: all as MPI_Cart_create; one box: x runs fastest.
  Triple box{1, 1, 1};

  std::uint32_t count() const { return pieces[0] * pieces[1] * pieces[2]; }
  Triple place_of(std::uint32_t rank) const;
  std::uint32_t rank_at(const Triple& place) const;
  Span span(std::size_t axis, std::uint32_t piece) const;
  // Of the pieces that have points of it.
  Span overlapping(std::size_t axis, const Span& points) const;
};

struct Answer;
class Stage;

class Remap {
 public:
  Remap(const Cut& from, const Cut& to, Bytes of_point) : from_(from), to_(to), of_point_(of_point) {}

  // `tag`: no other of this or an earlier exchange may have it. The remap has to outlive it.
  Task run(Rank& me, std::uint32_t tag) const;
  class Sample;

 private:
  struct Partner {
    std::uint32_t rank;
    std::uint64_t points;
  };
  // Of a rank: the ranks of `theirs` that its piece of `mine` overlaps, by their numbers.
  class Partners {
   public:
    Partners(const Cut& mine, const Cut& theirs, std::uint32_t rank);
    std::uint32_t count() const { return count_; }
    Partner at(std::uint32_t number) const;
    // Its own number among them; count(): it is none of them.
    std::uint32_t own() const;
    std::uint32_t others() const { return count_ - (own() < count_ ? 1 : 0); }
    // The others, from the next rank on and around the end: so many, beginning with that turn.
    void add_in_turn(std::uint32_t first, std::uint32_t count, std::vector<Partner>& to) const;

   private:
    std::uint32_t first_behind() const;
    const Cut& theirs_;
    std::uint32_t rank_;
    std::array<Cut::Span, 3> box_{};
    Triple first_{};
    Triple sides_{};
    std::uint32_t count_ = 1;
  };
  static std::vector<Partner> others(const Cut& mine, const Cut& theirs, std::uint32_t rank);
  Cut from_;
  Cut to_;
  Bytes of_point_;
};

// For one exchange of a job, and what it has taken there. The remap has to outlive it.
class Remap::Sample {
 public:
  // So many turns at the beginning, and as many at `place`, 0 to 1, of what is left.
  Sample(const Remap& remap, std::uint32_t turns, double place);
  Task run(Rank& me, std::uint32_t tag);
  bool is_all() const { return received_.empty(); }

  // Means over ranks: of what was run, of turns that were left out, and of what ranks waited for at the end, in ps.
  double run_ps() const { return static_cast<double>(run_ps_) / ranks(); }
  double left_ps() const;
  double waited_ps() const { return static_cast<double>(waited_ps_) / ranks(); }
  // All turns, over those that were run.
  double times() const;
  // Turns of a rank, of which some were run, on the mean of ranks.
  double turns() const { return static_cast<double>(turns_run_ + turns_left_) / ranks(); }
  // What a turn that counts took each rank, in ps; 0 where it had none.
  std::span<const float> of_ranks_ps() const { return of_ranks_ps_; }

 private:
  double ranks() const { return remap_->from_.count(); }
  std::vector<Partner> targets(std::uint32_t rank) const;
  double farther_ps(Rank& me, std::span<const Partner> some) const;

  const Remap* remap_;
  std::uint32_t turns_;
  double place_;
  std::vector<std::uint16_t> received_;  // by each rank; empty: all of it is run
  std::uint64_t turns_run_ = 0;          // by all ranks
  std::uint64_t turns_left_ = 0;
  std::uint64_t turns_counted_ = 0;
  std::uint64_t run_ps_ = 0;
  double counted_ps_ = 0;
  std::uint64_t waited_ps_ = 0;
  std::vector<float> of_ranks_ps_;
};

}  // namespace dryfly::motif
