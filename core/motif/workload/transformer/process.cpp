#include "core/motif/workload/transformer/process.hpp"

#include <algorithm>

#include "core/motif/collective/blocks.hpp"
#include "core/motif/collective/collectives.hpp"

namespace dryfly::motif::transformer {
namespace {

constexpr std::uint32_t tensor_number = 1, replica_number = 2, word_number = 3;  // of communicators

// Of what comes to a part.
std::uint32_t tag_of(std::uint32_t part, bool is_backward) { return 2 * part + (is_backward ? 1 : 0); }
constexpr Bytes half{2}, single{4};

std::unique_ptr<GpuCollective> collective(Rank& me, const Communicator& ranks, Collective what, std::uint64_t bytes,
                                          Bytes element, GpuAlgorithm algorithm, std::uint32_t number) {
  const CollectiveCall call{.what = what, .size = Bytes{bytes}, .element = element};
  return std::make_unique<GpuCollective>(me, ranks, call, algorithm, number);
}

}  // namespace

Process::Process(Rank& me, const Setting& setting)
    : setting_(setting),
      stage_(me.id() / (setting.tensor_ranks * setting.replicas)),
      stride_(setting.tensor_ranks * setting.replicas),
      group_(me.id() / setting.tensor_ranks * setting.tensor_ranks, 1, setting.tensor_ranks, tensor_number),
      traffic_(me) {
  const std::uint32_t t = setting.tensor_ranks, d = setting.replicas;
  const GpuAlgorithm by = setting.algorithm;
  const std::uint64_t activations = setting.activation_bytes();
  tensor_.push_back(collective(me, group_, Collective::allreduce, activations, half, by, sum));
  tensor_.push_back(collective(me, group_, Collective::reduce_scatter_block, activations / t, half, by, scatter));
  tensor_.push_back(collective(me, group_, Collective::allgather, activations / t, half, by, gather));
  tensor_.push_back(collective(me, group_, Collective::allreduce, setting.tokens() * single.count, single, by, loss));

  const Communicator replicas(stage_ * stride_ + me.id() % t, t, d, replica_number);
  const std::uint64_t parameters = setting.parameters_of(stage_);
  const Bytes element{setting.gradients.bytes};
  const Blocks buckets = Blocks::split(Bytes{parameters}, setting.gradients.buckets, Bytes{1});
  for (std::uint32_t bucket = 0; bucket < setting.gradients.buckets; ++bucket) {
    const std::uint64_t count = buckets.of(bucket).count;
    const std::uint64_t of_replica = (count + d - 1) / d;
    gradients_.push_back(setting.gradients.scattered ? collective(me, replicas, Collective::reduce_scatter_block,
                                                                  of_replica * element.count, element, by, bucket)
                                                     : collective(me, replicas, Collective::allreduce,
                                                                  count * element.count, element, by, bucket));
  }
  if (setting.gradients.scattered) {
    parameters_ = collective(me, replicas, Collective::allgather, (parameters + d - 1) / d * half.count, half, by,
                             setting.gradients.buckets);
  }
  if (setting.stages > 1 && (stage_ == 0 || stage_ + 1 == setting.stages)) {
    const Communicator both(me.id() % stride_, stride_ * (setting.stages - 1), 2, word_number);
    words_ = collective(me, both, Collective::allreduce, setting.words() * setting.model.hidden * element.count,
                        element, by, 0);
  }
}

Task Process::call(Rank& me, GpuCollective& collective) {
  co_await me.compute(setting_.launch);
  collective.start(traffic_);
  co_await collective.wait(me, traffic_);
}

Task Process::run_tensor(Rank& me, Tensor what) { return call(me, *tensor_[what]); }

Task Process::meet(Rank& me) const { return dissemination_barrier(me, group_); }

Task Process::tensor_of_pass(Rank& me, std::uint32_t part, bool is_backward) {
  if (setting_.tensor_ranks == 1) co_return;
  me.enter(setting_.phases.tensor);
  const Counts counts = is_backward ? setting_.backward_collectives(part) : setting_.forward_collectives(part);
  if (!setting_.runs_each) {
    Duration all{};
    for (const Tensor what : tensors) all = all + setting_.alone[what] * counts[what];
    co_await meet(me);
    co_await me.compute({all.ps - std::min(all.ps, setting_.meeting_alone.ps)});
    co_return;
  }
  for (const Tensor what : tensors) {
    for (std::uint64_t turn = 0; turn < counts[what]; ++turn) co_await run_tensor(me, what);
  }
}

void Process::count_tensor(Sent& sent) const {
  for (std::uint32_t chunk = 0; chunk < setting_.chunks; ++chunk) {
    const std::uint32_t part = chunk * setting_.stages + stage_;
    const Counts onward = setting_.forward_collectives(part), back = setting_.backward_collectives(part);
    for (const Tensor what : tensors) {
      sent.tensor += tensor_[what]->bytes() * (onward[what] + back[what]) * setting_.micro_batches();
    }
  }
}

Pending Process::post(Rank& me, std::uint64_t number, bool is_backward) const {
  const std::uint32_t part = part_of(number, is_backward);
  if (is_backward ? setting_.is_last(part) : setting_.is_first(part)) return {};
  return me.irecv(like(me, is_backward ? part + 1 : part + setting_.parts() - 1), tag_of(part, is_backward));
}

Task Process::receive(Rank& me, std::uint64_t number, bool is_backward) {
  me.enter(setting_.phases.pipeline);
  Pending& next = posted_[is_backward ? 1 : 0];
  const bool ahead = setting_.chunks > 1;
  const Pending wanted = ahead && number > 0 ? next : post(me, number, is_backward);
  if (ahead && number + 1 < passes()) next = post(me, number + 1, is_backward);
  co_await me.wait(wanted);
}

// Nobody waits for these before the end of the step.
void Process::send(Rank& me, std::uint32_t part, bool is_backward, Sent& sent) {
  if (is_backward ? setting_.is_first(part) : setting_.is_last(part)) return;
  const Bytes size{setting_.activation_bytes() / (setting_.sequence_parallel ? setting_.tensor_ranks : 1)};
  const std::uint32_t to = is_backward ? part - 1 : part + 1;
  sent.pipeline += size.count;
  me.isend(like(me, to), tag_of(to, is_backward), size);
}

Task Process::pass(Rank& me, std::uint64_t number, bool is_backward, Sent& sent) {
  const std::uint32_t part = part_of(number, is_backward);
  co_await receive(me, number, is_backward);
  if (is_backward && number + 1 == passes() && setting_.gradients.overlap) {
    co_await backward_with_gradients(me, part);
  } else {
    me.enter(is_backward ? setting_.phases.backward : setting_.phases.forward);
    co_await me.compute(is_backward ? setting_.backward_of(part) : setting_.forward_of(part));
    co_await tensor_of_pass(me, part, is_backward);
  }
  send(me, part, is_backward, sent);
}

// A part of the stage's layers is behind, and its gradients set out.
Task Process::backward_with_gradients(Rank& me, std::uint32_t part) {
  co_await tensor_of_pass(me, part, true);
  me.enter(setting_.phases.backward);
  const Duration whole = setting_.backward_of(part);
  const Instant begun = me.now();
  for (std::uint32_t bucket = 0; bucket < setting_.gradients.buckets; ++bucket) {
    const Duration behind{whole.ps / setting_.gradients.buckets * (bucket + 1) + whole.ps % setting_.gradients.buckets};
    co_await traffic_.pass(me, begun + behind);
    gradients_[bucket]->start(traffic_);
  }
}

Task Process::end_step(Rank& me, Sent& sent) {
  me.enter(setting_.phases.gradients);
  for (const std::unique_ptr<GpuCollective>& bucket : gradients_) {
    if (setting_.replicas > 1 && !setting_.gradients.overlap) co_await call(me, *bucket);
    sent.gradients += bucket->bytes();
  }
  for (const std::unique_ptr<GpuCollective>& bucket : gradients_) co_await bucket->wait(me, traffic_);
  if (words_ != nullptr) {
    me.enter(setting_.phases.embedding);
    co_await call(me, *words_);
    sent.embedding += words_->bytes();
  }
  me.enter(setting_.phases.optimizer);
  co_await me.compute(setting_.optimizer_of(stage_));
  if (parameters_ == nullptr || setting_.replicas == 1) co_return;
  me.enter(setting_.phases.gradients);
  co_await call(me, *parameters_);
  sent.gradients += parameters_->bytes();
}

std::uint32_t Process::part_of(std::uint64_t number, bool is_backward) const {
  const auto turn = static_cast<std::uint32_t>(number / setting_.stages % setting_.chunks);
  return (is_backward ? setting_.chunks - 1 - turn : turn) * setting_.stages + stage_;
}

Task Process::run(Rank& me, Sent& sent) {
  const std::uint64_t behind = setting_.stages - stage_ - 1;
  const std::uint64_t wanted = setting_.chunks > 1 ? 2 * behind + (setting_.chunks - 1) * setting_.stages : behind;
  const std::uint64_t ahead = std::min(wanted, passes());
  for (std::uint64_t turn = 0; turn < passes() + ahead; ++turn) {
    if (turn < passes()) co_await pass(me, turn, false, sent);
    if (turn >= ahead) co_await pass(me, turn - ahead, true, sent);
  }
  count_tensor(sent);
  co_await end_step(me, sent);
  co_await me.wait_all();
  me.enter(0);
}

Task run_process(Rank& me, const Setting& setting, Sent& sent) {
  Process process(me, setting);
  co_await process.run(me, sent);
}

}  // namespace dryfly::motif::transformer
