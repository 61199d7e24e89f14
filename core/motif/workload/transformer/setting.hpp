// What a training step is told, and what follows of it: how many of the model's parameters a rank has, what its passes
// compute, and the figures of a step (docs/model/skeleton-transformer.md).
#pragma once

#include <array>
#include <cstdint>

#include "core/motif/collective/gpu_collective.hpp"
#include "core/motif/job/phases.hpp"
#include "core/motif/workload/work_rates.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif::transformer {

// Of a tensor group: of the activations of a pass, and of what the loss needs of each token.
enum Tensor : std::uint8_t { sum, scatter, gather, loss };
inline constexpr std::array tensors{sum, scatter, gather, loss};
using Counts = std::array<std::uint64_t, tensors.size()>;

// Bytes that all ranks have sent in a step, those of collectives that were not run included.
struct Sent {
  std::uint64_t tensor = 0, pipeline = 0, gradients = 0, embedding = 0;
};

struct Model {
  std::uint64_t layers = 0, hidden = 0, heads = 0, sequence = 0, vocabulary = 0;
};

struct Gradients {
  std::uint64_t bytes = 4;  // of one
  std::uint32_t buckets = 1;
  bool overlap = false;    // with the last pass
  bool scattered = false;  // each replica has a part of the optimizer
};

struct Computing {
  bool recomputes = false;  // activations, on the way back
  bool flash = true;        // a fused kernel for attention
  std::uint64_t matmul_ppm = 1'000'000;
};

struct PhaseNumbers {
  std::uint16_t forward = 0, backward = 0, tensor = 0, pipeline = 0, gradients = 0, embedding = 0, optimizer = 0;
};

struct Setting {
  Model model;
  std::uint64_t micro_batch = 0, global_batch = 0;
  std::uint32_t tensor_ranks = 1, stages = 1, replicas = 1;
  std::uint32_t chunks = 1;  // of layers that a stage has, which are not behind one another
  bool sequence_parallel = false;
  Computing computing;
  Gradients gradients;
  bool each_tensor = false;
  GpuAlgorithm algorithm = GpuAlgorithm::tuned;
  WorkRates rates;
  double peak_per_s = 0;  // of a rank
  Duration launch{};

  bool runs_each = true;
  std::array<Duration, tensors.size()> alone{};  // what each takes when nobody else is there
  Duration meeting_alone{};                      // and a barrier of the group
  PhaseNumbers phases;

  // Throws SpecError.
  static Setting read(Stage& stage, Parameters& parameters);
  void name_phases(Phases& named);
  void add_figures(Answer& answer, const Sent& sent) const;

  // Of the parts that layers are divided into, one for each chunk of each stage, in their order.
  std::uint32_t parts() const { return stages * chunks; }
  bool is_first(std::uint32_t part) const { return part == 0; }
  bool is_last(std::uint32_t part) const { return part + 1 == parts(); }
  std::uint64_t micro_batches() const { return global_batch / micro_batch / replicas; }
  std::uint64_t layers_of_part() const { return model.layers / parts(); }
  std::uint64_t tokens() const { return micro_batch * model.sequence; }  // of a pass
  std::uint64_t activation_bytes() const { return tokens() * model.hidden * 2; }
  std::uint64_t words() const { return (model.vocabulary + tensor_ranks - 1) / tensor_ranks; }  // of a rank
  // Whether a tensor group is on several nodes, or all its collectives shall be run.
  bool runs_each_tensor(const Stage& stage) const {
    return each_tensor || stage.placement().per_node() % tensor_ranks != 0;
  }

  std::uint64_t parameters_of(std::uint32_t stage) const;
  // Of a pass through a part.
  Duration forward_of(std::uint32_t part) const;
  Duration backward_of(std::uint32_t part) const;
  Duration optimizer_of(std::uint32_t stage) const;
  // How many collectives of the tensor group a pass has.
  Counts forward_collectives(std::uint32_t part) const;
  Counts backward_collectives(std::uint32_t part) const;

 private:
  void check(std::uint64_t ranks) const;
  Duration product(std::uint64_t m, std::uint64_t n, std::uint64_t k) const;
  Duration attention(bool is_backward) const;
  Duration layer(bool is_backward) const;
  Duration ends(std::uint32_t part, bool is_backward) const;
};

}  // namespace dryfly::motif::transformer
