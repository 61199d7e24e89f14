#include <algorithm>
#include <charconv>
#include <future>
#include <thread>
#include <utility>

#include "core/machine/machine.hpp"
#include "core/motif/job/bus_carriage.hpp"
#include "core/motif/job/endpoints_carriage.hpp"
#include "core/motif/job/links_carriage.hpp"
#include "core/motif/job/network_carriage.hpp"
#include "core/motif/job/tally_carriage.hpp"
#include "core/motif/job/trouble.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/fault_plan.hpp"
#include "core/network/fabric/wiring.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::motif {
namespace {

Level level_named(const std::string& name, const Spec& spec) {
  if (name == "latency") return Level::latency;
  if (name == "links") return Level::links;
  const bool flows = spec.has(fields::fabric_model) && spec.text(fields::fabric_model) == "flow";
  if (name == (flows ? "flow" : "packet")) return Level::network;
  throw SpecError("level = `" + name + "`: accepted is latency, links or " + (flows ? "flow" : "packet") +
                  ", as the spec's fabric.model is");
}

// Numbers of nodes between commas, in the order in which they are filled.
std::vector<NodeId> nodes_of(const std::string& list, std::uint32_t count) {
  std::vector<NodeId> nodes;
  const char* at = list.data();
  const char* const end = at + list.size();
  for (;;) {
    NodeId node;
    const auto [stop, error] = std::from_chars(at, end, node.value);
    if (error != std::errc{} || (stop != end && *stop != ',')) {
      throw SpecError("on = `" + list + "`: accepted are numbers of nodes, with a comma between two");
    }
    nodes.push_back(node);
    if (stop == end) break;
    at = stop + 1;
  }
  if (nodes.size() != count) {
    throw SpecError("on has " + std::to_string(nodes.size()) +
                    " nodes: accepted is as many as nodes = " + std::to_string(count));
  }
  return nodes;
}

Placement place(const Dragonfly& topology, Parameters& parameters) {
  constexpr std::uint64_t most = UINT32_MAX;
  const auto nodes = static_cast<std::uint32_t>(parameters.number("nodes", 1, most));
  const auto per_node = static_cast<std::uint32_t>(parameters.number("ppn", 1, most));
  if (!parameters.has("on")) return {topology, nodes, per_node};
  return {topology, nodes_of(parameters.text("on"), nodes), per_node};
}

JobCosts read_costs(const Spec& spec, Parameters& parameters) {
  JobCosts costs = JobCosts::read(spec);
  const std::string on_node = parameters.text_or("on_node", "memory");
  if (on_node != "memory" && on_node != "nic" && on_node != "gpu") {
    throw SpecError("on_node = `" + on_node + "`: accepted is memory, nic or gpu");
  }
  costs.near_by_memory = on_node != "nic";
  constexpr std::uint64_t most = 1'000'000'000'000;
  const Duration step{parameters.number_or("gpu_step_ps", 0, 0, most)};
  const Duration post{parameters.number_or("gpu_post_ps", 0, 0, most)};
  const std::string joined = parameters.text_or("gpu_links", "");
  if (on_node == "gpu") {
    costs.gpus = GpuCosts::read(spec, step, post, joined);
    costs.latencies.command = costs.latencies.command + post;
  }
  return costs;
}

// Of one job. A second core gains where a rank's state is seldom in the cache, and two threads that hand each other a
// few messages now and then only wait for one another.
std::uint32_t cores_for(std::uint32_t ranks) {
  constexpr std::uint32_t many = 65'536;
  return ranks >= many && std::thread::hardware_concurrency() > 1 ? 2 : 1;
}

}  // namespace

void Answer::count_step_of(Job& job, std::uint64_t steps) {
  time = Duration{job.end().ps / steps};
  phases = job.phases().means(job.count());
  for (auto& [name, took] : phases) took = Duration{took.ps / steps};
}

void Answer::add_sides(const std::string& name, const std::array<std::uint32_t, 3>& sides) {
  for (std::size_t axis = 0; axis < 3; ++axis) figures.emplace_back(name + "_" + "xyz"[axis], sides[axis]);
}

Stage::Stage(const Spec& spec, Parameters& parameters, Tally* tally)
    : spec_(spec),
      topology_(spec),
      placement_(place(topology_, parameters)),
      costs_(read_costs(spec, parameters)),
      noises_(spec, placement_),
      level_(level_named(parameters.text_or("level", "links"), spec)),
      cores_(static_cast<std::uint32_t>(parameters.number_or("cores", cores_for(placement_.ranks()), 1, 2))),
      part_{parameters.number_or("part", part_bytes.count, 4096, std::uint64_t{1} << 30)},
      tally_(tally) {
  refuse_drained(spec, topology_, placement_);
}

std::uint64_t Stage::loads(std::uint64_t messages, Bytes each) const {
  return messages * std::max(std::uint64_t{1}, (each.count + part_.count - 1) / part_.count);
}

std::uint64_t Stage::affordable_loads() const { return level_ == Level::network ? 500'000 : 20'000'000; }

void Stage::refuse_passing_faults(const std::string& whole) const {
  if (!fabric::FaultPlan::any_in(spec_)) return;
  const fabric::Wiring wiring(topology_, fabric::FabricSpec::read(spec_), spec_);
  const auto plan = fabric::FaultPlan::read(spec_, topology_, wiring);
  if (std::ranges::all_of(plan.faults, &fabric::Fault::is_lasting)) return;
  throw SpecError(
      "faults that come and go (down, flaps, drain, from, until): a sample of the workload says nothing of them; "
      "accepted are " +
      whole + ", or faults that last");
}

void Stage::run(const Job::Program& program, Answer& answer, const std::function<void(Job&)>& prepared,
                const std::function<void(Job&)>& seen) {
  run(
      [&](Job& job) {
        if (prepared) prepared(job);
        job.run(program, sent_);
        if (seen) seen(job);
      },
      answer);
}

void Stage::run(const std::function<void(Job&)>& play, Answer& answer) { run(play, answer, cores_); }

void Stage::run(const std::function<void(Job&)>& play, Answer& answer, std::uint32_t cores_each) {
  if (level_ == Level::network && tally_ != nullptr) {
    Engine engine(job_slot_width_bits);
    TallyCarriage carriage(spec_, *tally_);
    Job job(engine, placement_, carriage, costs_, noises_);
    return run(job, play, answer);
  }
  if (level_ == Level::network) {
    Machine machine(spec_);
    // Before virtual time starts the network has none of what is planted.
    if (fabric::FaultPlan::any_in(spec_)) machine.network->restart(Instant{});
    NetworkCarriage carriage(spec_, topology_, machine.engine, machine.carrier());
    Job job(machine.engine, placement_, carriage, costs_, noises_);
    carriage.tell(job.carriage_listener());
    return run(job, play, answer);
  }
  Engine engine(job_slot_width_bits);
  std::unique_ptr<Carriage> carriage;
  if (level_ == Level::latency) {
    carriage = std::make_unique<EndpointsCarriage>(spec_, topology_, part_);
  } else {
    carriage = std::make_unique<LinksCarriage>(spec_, topology_, part_);
  }
  if (BusCarriage::is_in(spec_)) carriage = std::make_unique<BusCarriage>(spec_, topology_, std::move(carriage));
  Job job(engine, placement_, *carriage, costs_, noises_, cores_each);
  run(job, play, answer);
}

void Stage::run_side_by_side(std::span<const Job::Program> programs, Answer& answer) {
  std::vector<Answer> answers(programs.size());
  const auto run_one = [&](std::size_t number) {
    run([&](Job& job) { job.run(programs[number], sent_); }, answers[number], 1);
  };
  // A list of messages has one order only, and a tally is one.
  const bool is_one_at_a_time = sent_ != nullptr || tally_ != nullptr || std::thread::hardware_concurrency() < 2;
  const std::launch when = is_one_at_a_time ? std::launch::deferred : std::launch::async;
  std::vector<std::future<void>> others;
  for (std::size_t number = 1; number < programs.size(); ++number) others.push_back(std::async(when, run_one, number));
  run_one(0);
  for (std::future<void>& other : others) other.get();
  JobTotals at_once;
  for (const Answer& each : answers) {
    answer.totals.messages += each.totals.messages;
    answer.totals.bytes += each.totals.bytes;
    answer.totals.events += each.totals.events;
    at_once.records_max += each.totals.records_max;
    at_once.frame_bytes += each.totals.frame_bytes;
    answer.fingerprint = mix(answer.fingerprint ^ each.fingerprint);
  }
  answer.totals.records_max = std::max(answer.totals.records_max, at_once.records_max);
  answer.totals.frame_bytes = std::max(answer.totals.frame_bytes, at_once.frame_bytes);
}

void Stage::run(Job& job, const std::function<void(Job&)>& play, Answer& answer) {
  play(job);
  const JobTotals totals = job.totals();
  answer.totals.messages += totals.messages;
  answer.totals.bytes += totals.bytes;
  answer.totals.events += totals.events;
  answer.totals.records_max = std::max(answer.totals.records_max, totals.records_max);
  answer.totals.frame_bytes = std::max(answer.totals.frame_bytes, totals.frame_bytes);
  answer.fingerprint = mix(answer.fingerprint ^ job.fingerprint());
}

}  // namespace dryfly::motif
