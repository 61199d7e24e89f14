// A rank in a training step: one pass forward and one backward in turns, when as many passes are under way as stages
// follow (1F1B); then gradients, and the optimizer. A stage of several chunks takes them in turns, as many passes
// through one as there are stages, and begins earlier; it receives what the next pass needs while it computes.
//
// Ranks of a tensor group have numbers in a row; the stage is what changes last, so that replicas lie between.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/motif/collective/gpu_collective.hpp"
#include "core/motif/flight/traffic.hpp"
#include "core/motif/workload/transformer/setting.hpp"

namespace dryfly::motif::transformer {

class Process {
 public:
  Process(Rank& me, const Setting& setting);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Task run(Rank& me, Sent& sent);
  // One collective of the tensor group.
  Task run_tensor(Rank& me, Tensor what);
  Task meet(Rank& me) const;

 private:
  using Collectives = std::vector<std::unique_ptr<GpuCollective>>;

  std::uint64_t passes() const { return setting_.micro_batches() * setting_.chunks; }
  // The part of the layers that this rank's pass of that number is through.
  std::uint32_t part_of(std::uint64_t number, bool is_backward) const;
  Task pass(Rank& me, std::uint64_t number, bool is_backward, Sent& sent);
  Task tensor_of_pass(Rank& me, std::uint32_t part, bool is_backward);
  Task backward_with_gradients(Rank& me, std::uint32_t part);
  Task end_step(Rank& me, Sent& sent);
  Task call(Rank& me, GpuCollective& collective);
  Task receive(Rank& me, std::uint64_t number, bool is_backward);
  Pending post(Rank& me, std::uint64_t number, bool is_backward) const;
  void send(Rank& me, std::uint32_t part, bool is_backward, Sent& sent);
  // The rank like this one that has another part.
  std::uint32_t like(Rank& me, std::uint32_t part) const {
    return me.id() % stride_ + part % setting_.stages * stride_;
  }
  void count_tensor(Sent& sent) const;

  const Setting& setting_;
  const std::uint32_t stage_;
  const std::uint32_t stride_;  // from a stage to the next
  const Communicator group_;    // for tensors
  flight::Traffic traffic_;
  Collectives tensor_;
  Collectives gradients_;
  std::unique_ptr<GpuCollective> parameters_;
  std::unique_ptr<GpuCollective> words_;
  std::array<Pending, 2> posted_{};  // for the next pass, forward and backward
};

Task run_process(Rank& me, const Setting& setting, Sent& sent);

}  // namespace dryfly::motif::transformer
