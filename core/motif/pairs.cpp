#include <algorithm>

#include "core/motif/cores.hpp"
#include "core/motif/patterns.hpp"

namespace dryfly::generator {
namespace {

RmaKind kind_of(Verb verb) {
  if (verb == Verb::write) return RmaKind::write;
  return verb == Verb::read ? RmaKind::read : RmaKind::fetching_atomic;
}

// Keeps a window of commands under way from one end-point to another.
struct Stream {
  Stand& stand;
  Verb verb;
  EndpointId from;
  EndpointId to;
  Bytes size;
  std::uint64_t left;
  Instant last_done{};

  void next() {
    if (left == 0) return;
    --left;
    const auto done = [this] {
      last_done = stand.now();
      next();
    };
    if (verb == Verb::send) {
      stand.receive(to, size, 0, [] {});
      stand.send(from, to, size, 0, done);
    } else {
      stand.rma(kind_of(verb), from, to, size, true, done);
    }
  }
};

// One command at a time. Whoever waits for one sees that it is over when its core is free.
struct PingPong {
  Stand& stand;
  Cores& cores;
  Duration gap;
  EndpointId a;
  EndpointId b;
  Bytes size;
  std::uint64_t left;
  Instant begin{};
  std::vector<std::uint64_t> times_ps{};  // half of each round trip

  void round() {
    begin = stand.now();
    if (left-- == 0) return;
    stand.receive(a, size, 0, [this] {
      stand.from(cores.awake(0, stand.now()), [this] {
        times_ps.push_back((stand.now() - begin).ps / 2);
        stand.from(cores.after(0, stand.now(), gap), [this] { round(); });
      });
    });
    stand.receive(b, size, 0,
                  [this] { stand.from(cores.awake(1, stand.now()), [this] { stand.send(b, a, size, 0, [] {}); }); });
    stand.send(a, b, size, 0, [] {});
  }
};

struct Single {
  Stand& stand;
  Cores& cores;
  Duration gap;
  Verb verb;
  EndpointId from;
  EndpointId to;
  Bytes size;
  std::uint64_t left;
  Instant begin{};
  std::vector<std::uint64_t> times_ps{};

  void next() {
    begin = stand.now();
    if (left-- == 0) return;
    stand.rma(kind_of(verb), from, to, size, true, [this] {
      stand.from(cores.awake(0, stand.now()), [this] {
        times_ps.push_back((stand.now() - begin).ps);
        stand.from(cores.after(0, stand.now(), gap), [this] { next(); });
      });
    });
  }
};

}  // namespace

std::vector<std::uint64_t> latencies_ps(Stand& stand, Verb verb, NicId a, NicId b, Bytes size, std::uint64_t count,
                                        Duration gap) {
  const EndpointId first = stand.open(a);
  const EndpointId second = stand.open(b);
  Cores cores(stand, {a, b});
  if (verb == Verb::send) {
    PingPong game{stand, cores, gap, first, second, size, count};
    game.round();
    stand.run();
    return game.times_ps;
  }
  Single single{stand, cores, gap, verb, first, second, size, count};
  single.next();
  stand.run();
  return single.times_ps;
}

std::uint64_t stream_ps(Stand& stand, Verb verb, NicId a, NicId b, Bytes size, std::uint64_t count,
                        std::uint64_t window, bool both_ways) {
  const EndpointId first = stand.open(a);
  const EndpointId second = stand.open(b);
  Stream there{stand, verb, first, second, size, count};
  Stream back{stand, verb, second, first, size, both_ways ? count : 0};
  for (std::uint64_t n = 0; n < window; ++n) {
    there.next();
    back.next();
  }
  stand.run();
  return std::max(there.last_done, back.last_done).ps;
}

}  // namespace dryfly::generator
