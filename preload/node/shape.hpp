// The simulated node of this process's job: hardware threads and NUMA domains, as DRYFLY_PROCESSORS says
// (python/dryfly/binding/ranks.py). Numbers are those of docs/model/nodes.md#memories-of-a-node.
#pragma once

#include <cstdint>

#include "wire/wire.hpp"

namespace dryfly::preload {

inline constexpr std::uint32_t domains_max = 64;

struct Processors {
  std::uint64_t words[wire::processors_max / 64] = {};

  bool has(std::uint32_t number) const { return (words[number / 64] >> number % 64 & 1) != 0; }
  void add(std::uint32_t number) { words[number / 64] |= std::uint64_t{1} << number % 64; }
  bool any() const;
  std::uint32_t first() const;  // of a set that has some
  Processors operator&(const Processors& other) const;
  bool operator==(const Processors& other) const = default;
};

struct NodeShape {
  std::uint32_t cores = 0;
  std::uint32_t threads = 1;  // of a core
  std::uint32_t cored = 1;    // domains with cores, which come first
  std::uint32_t domains = 0;
  std::uint32_t socket[domains_max] = {};  // by domain
  Processors allowed;                      // that a job gets

  std::uint32_t processors() const { return cores * threads; }
  std::uint32_t domain_of(std::uint32_t processor) const;
  std::uint64_t all_domains() const { return domains >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << domains) - 1; }
};

// Null where there is none: outside a run, or on a node that is larger than this can say.
const NodeShape* node_shape();

// Where a rank that nobody binds is said to be: in the domain that is taken to be its own
// (docs/model/nodes.md#what-a-place-costs), on the node's cores in blocks. `told`: DRYFLY_NODE, or null.
std::uint32_t usual_processor(const NodeShape& node, const char* told);

// Of "1-8,53"; moves `at` behind it. False if it is none.
bool read_set(const char*& at, Processors& set);
// Writes the text of the set, and a zero. The room must suffice: at most 6 characters for each member.
char* write_set(const Processors& set, char* to);

}  // namespace dryfly::preload
