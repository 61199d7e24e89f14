// A training step of a decoder-only transformer, rank by rank as Megatron-LM has it
// (docs/model/skeleton-transformer.md): layers divided among stages of a pipeline, matrices among the ranks of a tensor
// group, sequences among replicas.
//
// Parameters, in base units:
//   layers, hidden, heads, sequence, vocabulary   the model
//   micro_batch, global_batch                     sequences of a pass, and of a step
//   tp, pp, dp                                    ranks of a tensor group, stages, replicas; tp * pp * dp = ranks
//   interleave                                    chunks of layers of a stage
//   sequence_parallel, recompute, attention       =1; none, full; flash, unfused
//   zero, gradient, buckets, overlap              =1: the optimizer is divided among replicas; bytes of a gradient;
//                                                 parts of a stage's gradients; =1: reduced while the last pass goes on
//   tensor                                        alone: collectives of a tensor group on one node take what they take
//                                                 alone, once the group has met; each: they are run
//   matmul_share                                  of the rate of products, in ppm
//   library                                       rccl, oneccl: whose collectives
#include <algorithm>
#include <bit>
#include <functional>
#include <string>

#include "core/motif/workload/transformer/process.hpp"
#include "core/motif/workload/transformer/setting.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

using transformer::Process;
using transformer::Setting;
using transformer::Tensor;

// Of what the first tensor group does, when nobody else is there.
Duration time_alone(Stage& stage, const Setting& setting, const std::function<Task(Process&, Rank&)>& what) {
  Answer unused;
  Duration longest{};
  const auto program = [&](Rank& me) -> Task {
    if (me.id() >= setting.tensor_ranks) co_return;
    Process process(me, setting);
    co_await what(process, me);
    co_await me.wait_all();
    longest = std::max(longest, me.now() - Instant{});
  };
  stage.run(program, unused, {});
  return longest;
}

// As a pass has them: ranks that are through with one begin the next.
constexpr std::uint32_t row = 8;

Task in_a_row(Process& process, Rank& me, Tensor what) {
  for (std::uint32_t turn = 0; turn < row; ++turn) co_await process.run_tensor(me, what);
}

// Its messages are few for what they carry: so many times what others can in a minute.
constexpr std::uint64_t loads_of_minute = 5;
// Those of gradients are many and short, where replicas are: few more than others.
constexpr std::uint64_t gradient_loads_of_minute = 2;

// Of a rank, for the gradients of a stage that so many replicas have.
std::uint64_t gradient_messages(const Setting& setting, std::uint64_t replicas) {
  return 2 * (replicas - 1) * setting.gradients.buckets;
}

std::uint64_t gradient_loads(const Stage& stage, const Setting& setting, std::uint64_t replicas) {
  const std::uint64_t ranks = replicas * setting.tensor_ranks * setting.stages;
  const std::uint64_t of_all = setting.parameters_of(0) * setting.gradients.bytes / setting.gradients.buckets;
  return stage.loads(gradient_messages(setting, replicas) * ranks, {of_all / replicas});
}

// As the user says it: replicas follow from nodes, which have to be whole.
std::string affordable_replicas(const Stage& stage, const Setting& setting, std::uint64_t most) {
  const std::uint64_t of_model = std::uint64_t{setting.tensor_ranks} * setting.stages;
  const std::uint64_t ppn = stage.placement().per_node();
  std::uint64_t replicas = setting.replicas;
  const auto fits = [&] { return gradient_loads(stage, setting, replicas) <= most && replicas * of_model % ppn == 0; };
  while (replicas > 0 && !fits()) --replicas;
  if (replicas == 0) return "more stages (pp)";
  return "--nodes " + std::to_string(replicas * of_model / ppn) + " (dp = " + std::to_string(replicas) +
         "), or more stages (pp)";
}

// Messages are in proportion to passes.
std::string affordable_batch(const Setting& setting, std::uint64_t loads, std::uint64_t most) {
  const std::uint64_t least = setting.micro_batch * setting.replicas;
  const auto batch = static_cast<std::uint64_t>(static_cast<double>(setting.global_batch) *
                                                (static_cast<double>(most) / static_cast<double>(loads)));
  if (batch < least) return "fewer ranks";
  return "global_batch = " + std::to_string(batch / least * least) + ", or fewer ranks";
}

void check_affordable(const Stage& stage, const Setting& setting) {
  const std::uint64_t ranks = stage.ranks(), passes = setting.micro_batches() * setting.chunks;
  const std::uint64_t most = loads_of_minute * stage.affordable_loads();
  const auto refusal = [&](const std::string& what, std::uint64_t each, std::uint64_t loads, std::uint64_t accepted,
                           const std::string& way) {
    const std::string with_parts = loads > each * ranks ? " with their parts (part)" : " together";
    return SpecError(what + ": " + std::to_string(each) + " messages of each of " + std::to_string(ranks) + " ranks, " +
                     std::to_string(loads) + with_parts + ", all of which are run: accepted are " +
                     std::to_string(accepted) + ", as with " + way);
  };
  const auto refuse = [&](const std::string& what, std::uint64_t each, Bytes size) {
    const std::uint64_t loads = stage.loads(each * ranks, size);
    if (loads > most) throw refusal(what, each, loads, most, affordable_batch(setting, loads, most));
  };
  const std::uint64_t tensor_ranks = setting.tensor_ranks;
  const bool each = setting.runs_each_tensor(stage);
  const std::string batch = "global_batch = " + std::to_string(setting.global_batch);
  const Bytes activations{setting.activation_bytes()};
  refuse(batch, setting.stages > 1 ? 2 * passes : 0, activations);
  if (tensor_ranks > 1 && each) {
    // Of a ring of four channels, of both kinds of passes.
    const std::uint64_t of_layer = 2 * 2 * (tensor_ranks - 1) * 4;
    refuse(batch, 2 * passes * of_layer * setting.layers_of_part(), {activations.count / (4 * tensor_ranks)});
  } else {
    refuse(batch, 2 * passes * static_cast<std::uint64_t>(std::bit_width(tensor_ranks - 1)), {});
  }
  const std::uint64_t loads = gradient_loads(stage, setting, setting.replicas);
  const std::uint64_t most_of_gradients = gradient_loads_of_minute * stage.affordable_loads();
  if (loads > most_of_gradients) {
    throw refusal("gradients of " + std::to_string(setting.replicas) + " replicas (dp)",
                  gradient_messages(setting, setting.replicas), loads, most_of_gradients,
                  affordable_replicas(stage, setting, most_of_gradients));
  }
}

}  // namespace

Answer predict_transformer(Stage& stage, Parameters& parameters) {
  Setting setting = Setting::read(stage, parameters);
  parameters.check_all_used();
  check_affordable(stage, setting);
  setting.runs_each = setting.runs_each_tensor(stage);
  if (!setting.runs_each && setting.tensor_ranks > 1) {
    const auto meet = [](Process& process, Rank& me) { return process.meet(me); };
    setting.meeting_alone = time_alone(stage, setting, meet);
    for (const Tensor what : transformer::tensors) {
      const auto run = [what](Process& process, Rank& me) { return in_a_row(process, me, what); };
      setting.alone[what] = Duration{time_alone(stage, setting, run).ps / row};
    }
  }
  Answer answer;
  transformer::Sent sent;
  stage.run([&](Rank& me) { return transformer::run_process(me, setting, sent); }, answer,
            [&](Job& job) { setting.name_phases(job.phases()); }, [&](Job& job) { answer.count_step_of(job, 1); });
  setting.add_figures(answer, sent);
  return answer;
}

}  // namespace dryfly::motif
