#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <numeric>

#include "core/motif/cores.hpp"
#include "core/motif/patterns.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/random.hpp"

namespace dryfly::generator {
namespace {

std::vector<EndpointId> open_all(Stand& stand, const std::vector<NicId>& nics) {
  std::vector<EndpointId> endpoints;
  endpoints.reserve(nics.size());
  for (const NicId nic : nics) endpoints.push_back(stand.open(nic));
  return endpoints;
}

std::vector<std::uint32_t> random_cycle(std::size_t size, std::uint64_t ring) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  const RandomStream draws{ring, 0, Purpose::workload};
  for (std::size_t i = size - 1; i > 0; --i) {
    std::swap(order[i], order[draws.below(i, static_cast<std::uint32_t>(i + 1))]);
  }
  return order;
}

// One rank of a recursive doubling. It may be begun again once it is over: of the partners of a rank that are through,
// none can be through with the next before that rank has begun it, so two in turn are enough for any number.
struct Doubling {
  Stand& stand;
  Cores& cores;
  const std::vector<EndpointId>& all;
  std::uint32_t rank = 0;
  Bytes size{};
  Duration send_cost{};
  Duration receive_cost{};
  Duration wake_cost{};
  std::uint32_t power = 1;  // ranks that take part in the rounds
  std::uint64_t tags = 0;   // of its messages: this and the round
  std::uint32_t round = 0;
  std::uint64_t here = 0;  // bit per round: its message has come
  Instant busy_until{};
  Instant end{};
  std::vector<Doubling>* ranks = nullptr;
  std::function<void()> finished{};

  // Ranks beyond the power of two give their value to a partner and get the result from it.
  bool folded() const { return rank >= power; }
  std::uint32_t extra() const { return rank + power < all.size() ? rank + power : rank; }

  void begin() {
    if (folded()) {
      message_to(rank - power, 0);
    } else if (extra() == rank) {
      exchange();
    }
  }
  // One send after the other, where a rank is behind and its partners' messages are there.
  Instant message_to(std::uint32_t peer, std::uint32_t tag) {
    busy_until = cores.after(rank, std::max(busy_until, stand.now()), send_cost);
    stand.at(busy_until, [this, peer, tag] {
      Doubling& target = (*ranks)[peer];
      stand.receive(all[peer], size, tags + tag, [&target, tag] { target.message(tag); });
      stand.send(all[rank], all[peer], size, tags + tag, [] {});
    });
    return busy_until;
  }
  // A message of a partner who is ahead waits until this rank gets to that round.
  void message(std::uint32_t tag) {
    const bool is_awaited = tag == 0 || tag == round;
    const Duration cost = is_awaited ? receive_cost + wake_cost : receive_cost;
    stand.at(cores.after(rank, stand.now(), cost), [this, tag] {
      if (folded()) {
        end = stand.now();
        if (finished) finished();
      } else if (tag == 0) {
        exchange();
      } else {
        here |= std::uint64_t{1} << tag;
        proceed();
      }
    });
  }
  void exchange() {
    round = 1;
    message_to(rank ^ 1U, round);
    proceed();
  }
  void proceed() {
    while (round > 0 && (here >> round & 1) != 0) {
      if ((std::uint32_t{1} << round) == power) {
        round = 0;
        return stand.from(busy_until, [this] { finish(); });
      }
      ++round;
      message_to(rank ^ (std::uint32_t{1} << (round - 1)), round);
    }
  }
  void finish() {
    end = stand.now();
    here = 0;
    if (extra() == rank) {
      if (finished) finished();
    } else if (const Instant told = message_to(extra(), 0); finished) {
      stand.at(told, [this] { finished(); });
    }
  }
};

std::vector<Doubling> doublings(Stand& stand, Cores& cores, const std::vector<EndpointId>& endpoints, Bytes size,
                                const CpuCosts& costs) {
  std::vector<Doubling> all;
  all.reserve(endpoints.size());
  for (std::uint32_t rank = 0; rank < endpoints.size(); ++rank) {
    // Before a round's message a rank posts the receive of that round.
    Doubling one{stand, cores, endpoints, rank, size, costs.receive + costs.send, costs.received, costs.wake};
    one.power = std::bit_floor(static_cast<std::uint32_t>(endpoints.size()));
    all.push_back(one);
  }
  return all;
}

// Where all ranks meet once; its end-points are its own.
struct Meeting {
  std::vector<EndpointId> endpoints;
  std::vector<Doubling> ranks;

  Meeting(Stand& stand, Cores& cores, const std::vector<NicId>& nics, const CpuCosts& costs)
      : endpoints(open_all(stand, nics)), ranks(doublings(stand, cores, endpoints, Bytes{8}, costs)) {
    for (Doubling& rank : ranks) rank.ranks = &ranks;
  }
};

// Recursive doublings in a loop: two in turn.
struct Doublings {
  Stand& stand;
  Cores& cores;
  const Loop& loop;
  std::vector<EndpointId> endpoints;
  std::vector<Doubling> turns[2];
  struct Rank {
    Instant start;
    std::uint64_t iteration = 0;
  };
  std::vector<Rank> ranks = std::vector<Rank>(endpoints.size());
  std::vector<std::uint64_t> times_ps{};

  Doublings(Stand& its_stand, Cores& its_cores, const std::vector<NicId>& nics, const Loop& its_loop,
            const CpuCosts& costs)
      : stand(its_stand), cores(its_cores), loop(its_loop), endpoints(open_all(stand, nics)) {
    for (std::uint64_t turn = 0; turn < 2; ++turn) {
      turns[turn] = doublings(stand, cores, endpoints, loop.size, costs);
      for (Doubling& one : turns[turn]) {
        one.ranks = &turns[turn];
        one.tags = turn * 64;
        one.finished = [this, rank = one.rank] { end(rank); };
      }
    }
  }
  void begin(std::uint32_t rank) {
    ranks[rank].start = stand.now();
    turns[ranks[rank].iteration % 2][rank].begin();
  }
  void end(std::uint32_t rank) {
    Rank& here = ranks[rank];
    if (here.iteration >= loop.warmup) times_ps.push_back((stand.now() - here.start).ps);
    if (++here.iteration < loop.warmup + loop.iterations) begin(rank);
  }
};

struct Neighbours {
  Stand& stand;
  Cores& cores;
  const Ring& ring;
  const CpuCosts& costs;
  std::vector<EndpointId> endpoints;
  std::vector<std::uint32_t> cycle;
  std::vector<std::unique_ptr<Meeting>> meetings{};  // by iteration
  RingTimes& times;
  struct Rank {
    Instant start;
    Instant busy_until;
    std::uint64_t open = 0;  // receives and sends that it waits for
    std::uint64_t iteration = 0;
    std::uint64_t loop_ps = 0;
  };
  std::vector<Rank> ranks = std::vector<Rank>(endpoints.size());

  enum Way : std::uint8_t { to_right, to_left };  // also the tag

  void begin(std::size_t place) {
    Rank& rank = ranks[place];
    const EndpointId own = endpoints[cycle[place]];
    const EndpointId right = endpoints[cycle[(place + 1) % cycle.size()]];
    const EndpointId left = endpoints[cycle[(place + cycle.size() - 1) % cycle.size()]];
    // A short payload is in the command: nobody waits until it has left.
    const bool is_fetched = ring.size.count > stand.spec().number(fields::nic_inline_bytes);
    rank.start = stand.now();
    rank.open = ring.outstanding * (is_fetched ? 4 : 2);
    Instant at = rank.start;
    for (std::uint64_t n = 0; n < 2 * ring.outstanding; ++n) {
      at = cores.after(cycle[place], at, costs.receive);
      const Way way = n % 2 == 0 ? to_right : to_left;
      stand.at(at, [this, place, own, way] {
        stand.receive(own, ring.size, way, [this, place] { complete(place, costs.received); });
      });
    }
    for (std::uint64_t n = 0; n < 2 * ring.outstanding; ++n) {
      at = cores.after(cycle[place], at, is_fetched ? costs.send_fetched : costs.send);
      const Way way = n % 2 == 0 ? to_left : to_right;
      const EndpointId target = way == to_left ? left : right;
      stand.at(at, [this, place, own, target, way, is_fetched] {
        stand.send(own, target, ring.size, way, [this, place, is_fetched] {
          if (is_fetched) complete(place, costs.sent);
        });
      });
    }
    rank.busy_until = at;
  }

  // One after the other: a rank has one CPU.
  void complete(std::size_t place, Duration cost) {
    Rank& rank = ranks[place];
    if (rank.busy_until < stand.now()) rank.busy_until = cores.after(cycle[place], stand.now(), costs.wake);
    rank.busy_until = cores.after(cycle[place], rank.busy_until, cost);
    if (--rank.open > 0) return;
    stand.at(rank.busy_until, [this, place] { meet(place); });
  }

  void meet(std::size_t place) {
    if (!ring.barrier) return end(place);
    Doubling& here = meetings[ranks[place].iteration]->ranks[cycle[place]];
    here.finished = [this, place] { end(place); };
    here.begin();
  }

  void end(std::size_t place) {
    Rank& rank = ranks[place];
    if (rank.iteration >= ring.warmup) {
      times.iterations_ps.push_back((stand.now() - rank.start).ps);
      rank.loop_ps += times.iterations_ps.back();
    }
    if (++rank.iteration < ring.warmup + ring.iterations) return begin(place);
    times.loops_ps.push_back(rank.loop_ps);
  }
};

}  // namespace

RingTimes ring_ps(Stand& stand, const std::vector<NicId>& ranks, const Ring& ring, const CpuCosts& costs) {
  DRYFLY_CHECK(!ring.barrier || std::has_single_bit(ranks.size()));
  Cores cores(stand, ranks);
  const std::vector<EndpointId> endpoints = open_all(stand, ranks);
  RingTimes times;
  for (std::uint64_t number = 0; number < ring.rings; ++number) {
    Neighbours all{stand, cores, ring, costs, endpoints, random_cycle(ranks.size(), number), {}, times};
    for (std::uint64_t n = 0; ring.barrier && n < ring.warmup + ring.iterations; ++n) {
      all.meetings.push_back(std::make_unique<Meeting>(stand, cores, ranks, costs));
    }
    for (std::size_t place = 0; place < ranks.size(); ++place) {
      stand.from(cores.begin(all.cycle[place]), [&all, place] { all.begin(place); });
    }
    stand.run();
  }
  return times;
}

std::uint64_t allreduce_ps(Stand& stand, const std::vector<NicId>& ranks, Bytes size, std::uint64_t iterations,
                           const CpuCosts& costs) {
  const std::vector<EndpointId> endpoints = open_all(stand, ranks);
  Cores cores(stand, ranks);
  std::uint64_t sum = 0;
  for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
    const Instant start = stand.now();
    std::vector<Doubling> all = doublings(stand, cores, endpoints, size, costs);
    for (Doubling& one : all) one.ranks = &all;
    for (Doubling& one : all) one.begin();
    stand.run();
    Instant end = start;
    for (const Doubling& one : all) end = std::max(end, one.end);
    sum += (end - start).ps;
  }
  return sum / iterations;
}

std::vector<std::uint64_t> allreduces_ps(Stand& stand, const std::vector<NicId>& ranks, const Loop& loop,
                                         const CpuCosts& costs) {
  Cores cores(stand, ranks);
  Doublings all(stand, cores, ranks, loop, costs);
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    stand.from(cores.begin(rank), [&all, rank] { all.begin(rank); });
  }
  stand.run();
  return all.times_ps;
}

double uniform_bytes_per_s(Stand& stand, const std::vector<NicId>& nics, Bytes size, std::uint64_t count,
                           std::uint64_t window, std::uint64_t seed) {
  const std::vector<EndpointId> endpoints = open_all(stand, nics);
  std::vector<std::uint64_t> left(nics.size(), count);
  std::vector<std::uint64_t> done_ps;
  done_ps.reserve(nics.size() * count);
  std::vector<RandomStream> draws;
  for (std::uint32_t nic = 0; nic < nics.size(); ++nic) draws.emplace_back(seed, nic, Purpose::workload);
  Instant first_idle = never;
  const std::function<void(std::uint32_t)> next = [&](std::uint32_t nic) {
    if (left[nic] == 0) {
      first_idle = std::min(first_idle, stand.now());
      return;
    }
    const std::uint64_t number = --left[nic];
    const std::uint32_t drawn = draws[nic].below(number, static_cast<std::uint32_t>(nics.size() - 1));
    const std::uint32_t target = drawn + (drawn >= nic ? 1 : 0);
    stand.rma(RmaKind::write, endpoints[nic], endpoints[target], size, false, [&, nic] {
      done_ps.push_back(stand.now().ps);
      next(nic);
    });
  };
  for (std::uint32_t nic = 0; nic < nics.size(); ++nic) {
    for (std::uint64_t n = 0; n < window; ++n) next(nic);
  }
  stand.run();
  const std::uint64_t begin = first_idle.ps / 4;
  const std::uint64_t end = first_idle.ps / 4 * 3;
  const auto within =
      std::count_if(done_ps.begin(), done_ps.end(), [&](std::uint64_t at_ps) { return at_ps >= begin && at_ps < end; });
  return static_cast<double>(within) * static_cast<double>(size.count) / (static_cast<double>(end - begin) * 1e-12);
}

}  // namespace dryfly::generator
