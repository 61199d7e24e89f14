// A mesh in pieces, one for each rank, and the exchange from one way of cutting it to another: what three-dimensional
// transforms are made of that go from boxes to pencils along each axis (LAMMPS' remap, HACC's SWFFT). Each rank sends
// to those whose new piece overlaps its old one, point to point, beginning behind itself; a send is over before the
// next one, as MPI_Send is.
//
// Of many partners a sample says how long all take: each rank sends to so many of them, evenly spread over its list,
// and the mean of all ranks, for all partners, is the answer. All ranks have to begin in step: a rank that waits for a
// late one would count that for each partner. Sends wait for their predecessors, so that there are never more of them
// on the network than in the whole exchange.
//
// Left out: packing, which is work and not a message.
#pragma once

#include <array>
#include <cstdint>
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
  // How long it takes if each rank sends to so many only. All ranks of a job have to begin together.
  Duration sampled(Stage& stage, Answer& answer, std::uint32_t partners) const;

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

   private:
    const Cut& theirs_;
    std::uint32_t rank_;
    std::array<Cut::Span, 3> box_{};
    Triple first_{};
    Triple sides_{};
    std::uint32_t count_ = 1;
  };
  static std::vector<Partner> others(const Cut& mine, const Cut& theirs, std::uint32_t rank);
  struct Sample {
    std::uint32_t partners;
    std::vector<std::uint16_t> received;  // by each rank
    double ps = 0;                        // of all ranks
  };
  // The numbers of those that a sample sends to.
  static std::vector<std::uint32_t> chosen(const Partners& targets, std::uint32_t rank, std::uint32_t partners);
  Task run_sample(Rank& me, Sample& sample) const;

  Cut from_;
  Cut to_;
  Bytes of_point_;
};

}  // namespace dryfly::motif
