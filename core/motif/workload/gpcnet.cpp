// GPCNeT's tests, alone and beside its congestors, rank by rank as programs/benchmark/gpcnet.c has them
// (docs/model/skeleton-gpcnet.md): random rings of 8 B and of 8 times 128 KiB with a barrier, and an allreduce of 8 B.
//
//   test=all|latency|bandwidth|allreduce
//   congestors=MILLIONTHS                 share of the nodes; 0: all nodes run the tests
//   load=both|isolated                    isolated: the congestors' nodes are there and do nothing
//   rings, warmup, latency_iterations, bandwidth_iterations, allreduces
//   pass=N                                iterations of a congestor of 32 ranks between two looks
//   draws=N                               seed of nodes and rings
//   library=mpich|openmpi                 who decides about collectives
//
// All ranks of a side (the tests, or a kind of congestors) know at the same look that the tests are over: by an
// allreduce, as in the program. Left out are the nonblocking barrier by which the congestors hear of it, and the
// congestors alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <numeric>
#include <string>
#include <vector>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

enum Test : std::uint8_t { latency, bandwidth, allreduce };
constexpr std::array<std::string_view, 3> test_names{"latency", "bandwidth", "allreduce"};

enum Kind : std::uint8_t { alltoall, incast, put_incast, get_bcast, none };
constexpr std::uint32_t kinds = 4;
constexpr Bytes congestor_bytes{4096};
constexpr std::uint64_t pass_ranks = 32;

enum Tag : std::uint32_t { to_one = 1, to_right = 81, to_left = 82 };

struct Ring {
  Bytes size;
  std::uint32_t messages;
  bool barrier;
};
constexpr std::array<Ring, 2> rings{Ring{Bytes{8}, 1, false}, Ring{Bytes{131072}, 8, true}};

struct Plan {
  std::uint64_t share = 0;  // of congestors, in millionths
  bool loaded = false;
  std::array<bool, 3> wanted{true, true, true};
  std::uint64_t rings = 1;
  std::array<std::uint64_t, 3> warmup{200, 1, 1};
  std::array<std::uint64_t, 3> iterations{200, 8, 200};
  std::uint64_t pass = 64;
  std::uint64_t draws = 8675309;
};

std::vector<std::uint32_t> drawn_order(std::uint32_t size, std::uint64_t seed, std::uint64_t number) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  const RandomStream draws(seed, number, Purpose::workload);
  for (std::uint32_t i = size - 1; i > 0; --i) std::swap(order[i], order[draws.below(i, i + 1)]);
  return order;
}

// Which rank is what. A slice has one rank of each node of the tests, or of one kind of congestors; a side has all.
class Cast {
 public:
  Cast(const Plan& plan, std::uint32_t nodes, std::uint32_t ranks_per_node) : per_node_(ranks_per_node) {
    congestor_nodes_ = static_cast<std::uint32_t>(plan.share * nodes / 1'000'000);
    const std::uint32_t least = plan.share > 0 ? 2 * kinds : 0;
    if (nodes - congestor_nodes_ < 2 || congestor_nodes_ < least) {
      throw SpecError("congestors on " + std::to_string(congestor_nodes_) + " of " + std::to_string(nodes) +
                      " nodes: accepted is a share that leaves 2 nodes for the tests and 2 for each of 4 congestors");
    }
    slices_.resize(std::size_t{kinds + 1} * per_node_);
    sides_.resize(kinds + 1);
    kind_.resize(std::size_t{nodes} * per_node_);
    place_in_slice_.resize(kind_.size());
    place_in_side_.resize(kind_.size());
    const std::vector<std::uint32_t> order = drawn_order(nodes, plan.draws, 0);
    for (std::uint32_t at = 0; at < nodes; ++at) {
      const Kind kind = at < congestor_nodes_ ? static_cast<Kind>(at % kinds) : none;
      for (std::uint32_t local = 0; local < per_node_; ++local) add(order[at] * per_node_ + local, kind, local);
    }
  }

  std::uint32_t congestor_nodes() const { return congestor_nodes_; }
  std::uint32_t test_ranks() const { return static_cast<std::uint32_t>(sides_[none].size()); }
  Kind kind(const Rank& me) const { return kind_[me.id()]; }
  std::uint32_t slice_number(const Rank& me) const { return me.id() % per_node_; }
  Communicator slice(const Rank& me) const {
    return {slices_[kind(me) * std::size_t{per_node_} + slice_number(me)], place_in_slice_, 1};
  }
  Communicator side(const Rank& me) const { return {sides_[kind(me)], place_in_side_, 2}; }

 private:
  void add(std::uint32_t rank, Kind kind, std::uint32_t local) {
    std::vector<std::uint32_t>& slice = slices_[kind * std::size_t{per_node_} + local];
    kind_[rank] = kind;
    place_in_slice_[rank] = static_cast<std::uint32_t>(slice.size());
    place_in_side_[rank] = static_cast<std::uint32_t>(sides_[kind].size());
    slice.push_back(rank);
    sides_[kind].push_back(rank);
  }

  std::uint32_t per_node_;
  std::uint32_t congestor_nodes_;
  std::vector<std::vector<std::uint32_t>> slices_;  // by kind and place within a node
  std::vector<std::vector<std::uint32_t>> sides_;   // by kind
  std::vector<Kind> kind_;                          // of each rank, as all below
  std::vector<std::uint32_t> place_in_slice_;
  std::vector<std::uint32_t> place_in_side_;
};

// Of one test, alone or beside the congestors.
struct Times {
  std::vector<std::uint64_t> each_ps;  // of an iteration of a rank
  double sum_of_rates = 0;             // of the ranks and rings: iterations over their time
};

class Show {
 public:
  Show(const Plan& plan, const Cast& cast, const Selection& selection)
      : plan_(plan), cast_(cast), selection_(selection) {
    for (std::uint64_t ring = 0; ring < plan.rings; ++ring) drawn_.emplace_back();
  }

  Task program(Rank& me) {
    for (const bool is_loaded : {false, true}) {
      if (is_loaded && !plan_.loaded) break;
      if (is_loaded) co_await barrier(me, world(me));  // no congestor begins beside an isolated test
      for (const Test test : {latency, bandwidth, allreduce}) {
        if (!plan_.wanted[test]) continue;
        if (cast_.kind(me) == none) {
          co_await run_test(me, test, is_loaded);
        } else if (is_loaded) {
          co_await run_congestor(me, test);
        }
      }
    }
  }

  const Times& times(Test test, bool is_loaded) const { return times_[is_loaded][test]; }

 private:
  Task barrier(Rank& me, Communicator ranks) {
    return run_collective(me, ranks, {.what = Collective::barrier}, selection_);
  }
  Task sum(Rank& me, Communicator ranks, Bytes size) {
    return run_collective(me, ranks, {.what = Collective::allreduce, .size = size, .element = size}, selection_);
  }

  // --- The tests

  Task run_test(Rank& me, Test test, bool is_loaded) {
    Times& times = times_[is_loaded][test];
    if (is_loaded) co_await barrier(me, world(me));  // the congestors are there
    const std::uint64_t rings_of_test = test == allreduce ? 1 : plan_.rings;
    for (std::uint64_t number = 0; number < rings_of_test; ++number) {
      std::uint64_t own_ps = 0;
      co_await barrier(me, cast_.side(me));
      if (test == allreduce) {
        co_await allreduces(me, times, own_ps);
      } else {
        co_await ring(me, test, number, times, own_ps);
        co_await barrier(me, cast_.slice(me));
      }
      times.sum_of_rates += static_cast<double>(plan_.iterations[test]) / (static_cast<double>(own_ps) * 1e-12);
    }
    if (is_loaded) ++ended_[test];
  }

  Task ring(Rank& me, Test test, std::uint64_t number, Times& times, std::uint64_t& own_ps) {
    const Communicator slice = cast_.slice(me);
    const Ring& ring = rings[test];
    const auto [left, right] = neighbours(me, slice, number);
    const Duration reading = me.job().costs().cpu.clock_read;
    for (std::uint64_t turn = 0; turn < plan_.warmup[test] + plan_.iterations[test]; ++turn) {
      me.work(reading);
      const Instant begun = me.now();
      for (std::uint32_t n = 0; n < ring.messages; ++n) {
        me.irecv(left, to_right);
        me.irecv(right, to_left);
      }
      for (std::uint32_t n = 0; n < ring.messages; ++n) {
        me.isend(left, to_left, ring.size);
        me.isend(right, to_right, ring.size);
      }
      co_await me.wait_all();
      if (ring.barrier) co_await barrier(me, slice);
      me.work(reading);
      if (turn >= plan_.warmup[test]) note(times, own_ps, me.now() - begun);
    }
  }

  Task allreduces(Rank& me, Times& times, std::uint64_t& own_ps) {
    const Communicator slice = cast_.slice(me);
    const Duration reading = me.job().costs().cpu.clock_read;
    for (std::uint64_t turn = 0; turn < plan_.warmup[allreduce] + plan_.iterations[allreduce]; ++turn) {
      me.work(reading);
      const Instant begun = me.now();
      co_await sum(me, slice, Bytes{8});
      me.work(reading);
      if (turn >= plan_.warmup[allreduce]) note(times, own_ps, me.now() - begun);
    }
  }

  static void note(Times& times, std::uint64_t& own_ps, Duration took) {
    times.each_ps.push_back(took.ps);
    own_ps += took.ps;
  }

  struct Neighbours {
    std::uint32_t left;
    std::uint32_t right;
  };

  // A slice's ring is drawn when its first rank comes to it.
  Neighbours neighbours(const Rank& me, const Communicator& slice, std::uint64_t number) {
    const std::uint32_t local = cast_.slice_number(me);
    std::vector<Drawn>& of_ring = drawn_[number];
    if (of_ring.size() <= local) of_ring.resize(local + std::size_t{1});
    Drawn& drawn = of_ring[local];
    const std::uint32_t size = slice.size();
    if (drawn.order.empty()) {
      drawn.order = drawn_order(size, plan_.draws + local, number + 1);
      drawn.at.resize(size);
      for (std::uint32_t at = 0; at < size; ++at) drawn.at[drawn.order[at]] = at;
    }
    const std::uint32_t at = drawn.at[slice.place_of(me)];
    return {slice.rank(drawn.order[(at + size - 1) % size]), slice.rank(drawn.order[(at + 1) % size])};
  }

  // --- The congestors

  Task run_congestor(Rank& me, Test test) {
    const Communicator side = cast_.side(me);
    std::deque<bool>& all_over = all_over_[cast_.kind(me)][test];
    co_await congest(me);
    co_await barrier(me, world(me));
    for (std::size_t look = 0;; ++look) {
      co_await congest(me);
      if (all_over.size() <= look) all_over.push_back(true);
      if (ended_[test] < cast_.test_ranks()) all_over[look] = false;
      co_await sum(me, side, Bytes{4});
      if (all_over[look]) break;
    }
  }

  Task congest(Rank& me) {
    const Communicator slice = cast_.slice(me);
    const Kind kind = cast_.kind(me);
    const std::uint64_t size = slice.size();
    const std::uint64_t iterations = size > pass_ranks ? plan_.pass * pass_ranks / size : plan_.pass;
    const std::uint32_t root = slice.rank(0);
    for (std::uint64_t turn = 0; turn < std::max<std::uint64_t>(iterations, 1); ++turn) {
      if (kind == alltoall) {
        co_await exclusive_alltoall(me, slice, congestor_bytes);
      } else if (me.id() != root) {
        if (kind == incast) co_await me.send(root, to_one, congestor_bytes);
        if (kind == put_incast) co_await me.wait(me.put(root, congestor_bytes));
        if (kind == get_bcast) co_await me.wait(me.get(root, congestor_bytes));
      } else if (kind == incast) {
        for (std::uint32_t place = 1; place < size; ++place) me.irecv(slice.rank(place), to_one);
        co_await me.wait_all();
      }
    }
  }

  struct Drawn {
    std::vector<std::uint32_t> order;  // places, around the ring
    std::vector<std::uint32_t> at;     // where each place is in it
  };

  const Plan& plan_;
  const Cast& cast_;
  const Selection& selection_;
  std::array<std::array<Times, 3>, 2> times_;
  std::array<std::uint32_t, 3> ended_{};                         // ranks that are through with the loaded test
  std::array<std::array<std::deque<bool>, 3>, kinds> all_over_;  // as those that have looked saw it, by look
  std::vector<std::vector<Drawn>> drawn_;                        // by ring and slice
};

struct Figures {
  double mean = 0;
  double p99 = 0;
};

// As GPCNeT counts (the same page): in ps, or bytes a second.
Figures figures_of(Test test, const Times& times, std::uint64_t ranks_and_rings) {
  std::vector<std::uint64_t> sorted = times.each_ps;
  const std::size_t at = std::max<std::size_t>(sorted.size() * 99 / 100, 1) - 1;
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(at));
  const auto slow = static_cast<double>(sorted[at]);
  if (test == bandwidth) {
    const double bytes = 2.0 * rings[bandwidth].messages * static_cast<double>(rings[bandwidth].size.count);
    return {bytes * times.sum_of_rates / static_cast<double>(ranks_and_rings), bytes / (slow * 1e-12)};
  }
  double sum = 0;
  for (const std::uint64_t each : times.each_ps) sum += static_cast<double>(each);
  const double parts = test == latency ? 2 : 1;  // an exchange is two messages one after the other
  return {sum / static_cast<double>(times.each_ps.size()) / parts, slow / parts};
}

void add_figures(Answer& answer, const std::string& prefix, Test test, const Figures& figures) {
  const std::string unit = test == bandwidth ? "_bytes_per_s" : "_ps";
  const std::string name = prefix + std::string(test_names[test]);
  answer.figures.emplace_back(name + "_mean" + unit, figures.mean);
  answer.figures.emplace_back(name + "_p99" + unit, figures.p99);
}

Plan plan_of(Parameters& parameters) {
  Plan plan;
  plan.share = parameters.number_or("congestors", 0, 0, 900'000);
  const std::string load = parameters.text_or("load", "both");
  if (load != "both" && load != "isolated") throw SpecError("load = `" + load + "`: accepted is both or isolated");
  plan.loaded = plan.share > 0 && load == "both";
  const std::string test = parameters.text_or("test", "all");
  if (test != "all") {
    for (std::size_t each = 0; each < test_names.size(); ++each) plan.wanted[each] = test == test_names[each];
    if (std::ranges::none_of(plan.wanted, [](bool wanted) { return wanted; })) {
      throw SpecError("test = `" + test + "`: accepted is all, latency, bandwidth or allreduce");
    }
  }
  plan.rings = parameters.number_or("rings", plan.rings, 1, 1000);
  plan.warmup[latency] = parameters.number_or("warmup", plan.warmup[latency], 0, 100'000);
  plan.iterations[latency] = parameters.number_or("latency_iterations", plan.iterations[latency], 1, 100'000);
  plan.iterations[bandwidth] = parameters.number_or("bandwidth_iterations", plan.iterations[bandwidth], 1, 100'000);
  plan.iterations[allreduce] = parameters.number_or("allreduces", plan.iterations[allreduce], 1, 100'000);
  plan.pass = parameters.number_or("pass", plan.pass, 1, 1'000'000);
  plan.draws = parameters.number_or("draws", plan.draws, 0, UINT32_MAX);
  return plan;
}

}  // namespace

Answer predict_gpcnet(Stage& stage, Parameters& parameters) {
  const Plan plan = plan_of(parameters);
  const Selection selection = Selection::of_library(parameters.text_or("library", "mpich"));
  parameters.check_all_used();
  const Cast cast(plan, stage.placement().nodes(), stage.placement().per_node());
  Show show(plan, cast, selection);
  Answer answer;
  stage.run([&](Rank& me) { return show.program(me); }, answer, [&](Job& job) { answer.time = job.end() - Instant{}; });
  const std::uint64_t ranks_and_rings = cast.test_ranks() * plan.rings;
  for (const bool is_loaded : {false, true}) {
    if (is_loaded && !plan.loaded) break;
    for (const Test test : {latency, bandwidth, allreduce}) {
      if (!plan.wanted[test]) continue;
      add_figures(answer, is_loaded ? "congested_" : "", test,
                  figures_of(test, show.times(test, is_loaded), ranks_and_rings));
    }
  }
  for (const Test test : {latency, bandwidth, allreduce}) {
    if (!plan.wanted[test] || !plan.loaded) continue;
    const Figures alone = figures_of(test, show.times(test, false), ranks_and_rings);
    const Figures beside = figures_of(test, show.times(test, true), ranks_and_rings);
    const bool is_rate = test == bandwidth;
    const std::string name(test_names[test]);
    answer.figures.emplace_back(name + "_mean_factor", is_rate ? alone.mean / beside.mean : beside.mean / alone.mean);
    answer.figures.emplace_back(name + "_p99_factor", is_rate ? alone.p99 / beside.p99 : beside.p99 / alone.p99);
  }
  answer.figures.emplace_back("congestor_nodes", cast.congestor_nodes());
  answer.chosen = selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
