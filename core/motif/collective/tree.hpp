// The trees that collectives go along. Places are relative: the root is 0.
//
// Their shapes are those of MPICH and of Open MPI, children in the order in which these serve them in a broadcast.
#pragma once

#include <cstdint>
#include <vector>

namespace dryfly::motif {

enum class Shape : std::uint8_t {
  linear,             // all are children of the root
  chain,              // `fan` chains of nearly equal length hang from the root
  bushy,              // each has up to `fan` children, level by level: binary with 2
  binomial,           // the parent's number is the own one without its lowest bit; the largest subtree comes first
  distance_binomial,  // ... without its highest bit; neighbours first
  knomial,            // binomial in base `fan`
  in_order_binary,    // subtrees are ranges of places; the root is the last one of all
};

class Tree {
 public:
  Tree(Shape shape, std::uint32_t places, std::uint32_t fan) : shape_(shape), places_(places), fan_(fan ? fan : 1) {}

  Shape shape() const { return shape_; }
  std::uint32_t root() const { return shape_ == Shape::in_order_binary ? places_ - 1 : 0; }
  // Of the root: itself.
  std::uint32_t parent(std::uint32_t place) const;
  std::vector<std::uint32_t> children(std::uint32_t place) const;

 private:
  struct InOrder {
    std::uint32_t parent;
    std::vector<std::uint32_t> children;
  };
  InOrder in_order(std::uint32_t place) const;
  // Of a bushy tree: fan to the power of the place's level.
  std::uint64_t level_width(std::uint32_t place) const;
  // Of the chains: the place that the i-th begins with.
  std::uint32_t head(std::uint32_t chain) const;

  Shape shape_;
  std::uint32_t places_;
  std::uint32_t fan_;
};

}  // namespace dryfly::motif
