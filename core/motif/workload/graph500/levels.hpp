// How many vertices a breadth-first search finds in each level, and what that sends, without a graph: vertices of a
// Kronecker graph that have the same number of ones in their labels are alike, so that classes of them are counted.
//
// Models programs/proxy/graph500.c on the graph of graph500.org. A vertex of class k has a mean degree that follows
// from the generator's first quarter, and so has the share of its neighbours that are of class l; how many edges two
// vertices share is a Poisson number, which makes the next level a binomial draw in each class. All draws follow from a
// seed. What ranks have of a level is its mean, since labels are permuted, but few vertices lie in columns as drawn.
//
// Left out: that vertices of two classes share more or fewer edges by which of their bits are ones.
#pragma once

#include <cstdint>
#include <vector>

namespace dryfly::motif::graph500 {

struct Problem {
  std::uint32_t scale = 0;
  double edge_factor = 16;
  std::uint32_t rows = 1;
  std::uint32_t columns = 1;
  double alpha = 14;  // a level goes bottom up once the frontier has more than 1 / alpha of the edges that are left
  double beta = 24;   // and top down again once it has fewer than 1 / beta of the vertices

  std::uint64_t local() const { return (std::uint64_t{1} << scale) / rows / columns; }  // vertices of a rank
};

// Means of a rank.
struct Level {
  bool bottom_up = false;
  double frontier = 0;  // vertices, of all ranks
  // Pairs of a message along the row. Top down by the sender's column, bottom up by the step: part and sender are so
  // many places apart.
  std::vector<double> pairs;
  // What it takes from memory, at random places: vertices whose edges are looked up, and edges that are followed. By
  // column or step, as above.
  std::vector<double> vertices;
  std::vector<double> edges;
};

struct Search {
  std::vector<Level> levels;
  double found = 0;      // vertices
  double traversed = 0;  // edges, as they count for the rate
};

Search draw_search(const Problem& problem, std::uint64_t seed, std::uint64_t number);

}  // namespace dryfly::motif::graph500
