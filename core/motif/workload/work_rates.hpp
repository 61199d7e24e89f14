// What announced work (include/dryfly/work.h) takes on a rank of the simulated machine: the same roof line as
// `dryfly run --compute model` takes (docs/guide/compute-model.md), for skeletons. A rank has an even share of its
// node's processors and GPUs, of the processors' memory no more than a NUMA domain carries, and the faster of the two
// does the work.
//
// Beyond it, if wanted, products on a GPU are slower where they do not fill it: tiles at the edges, a last wave of
// tiles that does not occupy all units, and the steps that it takes to fill a unit's pipeline
// (docs/model/skeleton-hpl.md#products).
//
// Left out: binding, clocks that fall under load, and moving operands between the two memories.
#pragma once

#include <cstdint>

#include "core/spec/spec.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

// Of one GPU. A tile of 0 rows: nothing of it is modelled.
struct ProductShape {
  std::uint64_t tile = 0;   // rows and columns of C that one unit makes
  std::uint64_t units = 1;  // of the rank's share of GPUs
  std::uint64_t fill = 0;   // steps of k that are lost at the beginning and end of a tile
};

enum class Precision : std::uint8_t { fp64, fp32, half };
enum class Where : std::uint8_t { faster, cpu, gpu };

class WorkRates {
 public:
  // SpecError: the spec has no compute.*, or no GPU where one is wanted.
  WorkRates(const Spec& spec, std::uint32_t ranks_per_node, const ProductShape& shape, Where where);

  Duration product(std::uint64_t m, std::uint64_t n, std::uint64_t k, Precision precision) const;
  Duration triangular_solve(std::uint64_t m, std::uint64_t n, Precision precision) const;
  Duration memory(std::uint64_t bytes) const;
  Duration arithmetic(std::uint64_t operations, Precision precision) const;

  // Operations per second in FP64 of a node, of the place that is the faster.
  double node_fp64_per_s() const;

 private:
  __extension__ using Wide = unsigned __int128;
  struct Place {
    std::uint64_t latency_ps = 0;
    std::uint64_t memory_bytes_per_s = 0;  // 0: there is none
    std::uint64_t operations_per_s[3] = {};
  };
  struct Amount {
    Wide operations = 0;
    Wide bytes = 0;
    double share_of_rate = 1;  // on a GPU
  };
  static Place read_cpu(const Spec& spec, std::uint64_t ranks_per_node);
  static Place read_gpu(const Spec& spec);
  Duration time(const Amount& amount, Precision precision) const;
  std::uint64_t time_on(const Place& place, const Amount& amount, Precision precision, double share_of_rate) const;
  double share_of_rate(std::uint64_t m, std::uint64_t n, std::uint64_t k) const;

  Place cpu_;
  Place gpu_;
  std::uint32_t sharers_;
  ProductShape shape_;
  Where where_;
};

}  // namespace dryfly::motif
