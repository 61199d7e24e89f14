#include <algorithm>
#include <bit>
#include <numeric>

#include "core/unit/random.hpp"
#include "generator/patterns.hpp"

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

// One rank of a recursive doubling.
struct Doubling {
  Stand& stand;
  const std::vector<EndpointId>& all;
  std::uint32_t rank = 0;
  Bytes size{};
  Duration send_cost{};
  Duration receive_cost{};
  std::uint32_t power = 1;  // ranks that take part in the rounds
  std::uint32_t round = 0;
  std::uint64_t here = 0;  // bit per round: its message has come
  Instant end{};
  std::vector<Doubling>* ranks = nullptr;

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
  void message_to(std::uint32_t peer, std::uint32_t tag) {
    stand.at(stand.now() + send_cost, [this, peer, tag] {
      Doubling& target = (*ranks)[peer];
      stand.receive(all[peer], size, tag, [&target, tag] { target.message(tag); });
      stand.send(all[rank], all[peer], size, tag, [] {});
    });
  }
  // A message of a partner who is ahead waits until this rank gets to that round.
  void message(std::uint32_t tag) {
    stand.at(stand.now() + receive_cost, [this, tag] {
      if (folded()) {
        end = stand.now();
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
        end = stand.now();
        round = 0;
        if (extra() != rank) message_to(extra(), 0);
        return;
      }
      ++round;
      message_to(rank ^ (std::uint32_t{1} << (round - 1)), round);
    }
  }
};

}  // namespace

std::vector<std::uint64_t> ring_ps(Stand& stand, const std::vector<NicId>& ranks, Bytes size, std::uint64_t rings,
                                   std::uint64_t iterations, Duration send_cost, Duration receive_cost) {
  const std::vector<EndpointId> endpoints = open_all(stand, ranks);
  std::vector<std::uint64_t> times;
  times.reserve(ranks.size() * rings * iterations);
  for (std::uint64_t ring = 0; ring < rings; ++ring) {
    const std::vector<std::uint32_t> cycle = random_cycle(ranks.size(), ring);
    for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
      const Instant start = stand.now();
      for (std::size_t place = 0; place < cycle.size(); ++place) {
        const EndpointId from = endpoints[cycle[place]];
        const EndpointId to = endpoints[cycle[(place + 1) % cycle.size()]];
        stand.receive(to, size, 0, [&stand, &times, start, receive_cost] {
          times.push_back((stand.now() + receive_cost - start).ps);
        });
        stand.at(start + send_cost, [&stand, from, to, size] { stand.send(from, to, size, 0, [] {}); });
      }
      stand.run();
    }
  }
  return times;
}

std::uint64_t allreduce_ps(Stand& stand, const std::vector<NicId>& ranks, Bytes size, std::uint64_t iterations,
                           Duration send_cost, Duration receive_cost) {
  const std::vector<EndpointId> endpoints = open_all(stand, ranks);
  std::uint64_t sum = 0;
  for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
    const Instant start = stand.now();
    std::vector<Doubling> all;
    all.reserve(endpoints.size());
    for (std::uint32_t rank = 0; rank < endpoints.size(); ++rank) {
      Doubling one{stand, endpoints, rank, size, send_cost, receive_cost};
      one.power = std::bit_floor(static_cast<std::uint32_t>(endpoints.size()));
      one.ranks = &all;
      all.push_back(one);
    }
    for (Doubling& one : all) one.begin();
    stand.run();
    Instant end = start;
    for (const Doubling& one : all) end = std::max(end, one.end);
    sum += (end - start).ps;
  }
  return sum / iterations;
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
