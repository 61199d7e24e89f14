#include <algorithm>

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
  std::vector<std::uint64_t> times_ps{};  // between completions: each one's own where one is under way at a time

  void next() {
    if (left == 0) return;
    --left;
    const auto done = [this] {
      times_ps.push_back((stand.now() - last_done).ps);
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

struct PingPong {
  Stand& stand;
  EndpointId a;
  EndpointId b;
  Bytes size;
  std::uint64_t left;
  Instant begin{};
  std::vector<std::uint64_t> times_ps{};  // half of each round trip

  void round() {
    if (stand.now() > begin) times_ps.push_back((stand.now() - begin).ps / 2);
    begin = stand.now();
    if (left-- == 0) return;
    stand.receive(a, size, 0, [this] { round(); });
    stand.receive(b, size, 0, [this] { stand.send(b, a, size, 0, [] {}); });
    stand.send(a, b, size, 0, [] {});
  }
};

}  // namespace

std::vector<std::uint64_t> latencies_ps(Stand& stand, Verb verb, NicId a, NicId b, Bytes size, std::uint64_t count) {
  const EndpointId first = stand.open(a);
  const EndpointId second = stand.open(b);
  if (verb == Verb::send) {
    PingPong game{stand, first, second, size, count};
    game.round();
    stand.run();
    return game.times_ps;
  }
  Stream single{stand, verb, first, second, size, count};
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
