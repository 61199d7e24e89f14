#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "core/host/noise_settings.hpp"
#include "core/motif/cores.hpp"
#include "core/motif/patterns.hpp"
#include "testing/sample_machine.hpp"

namespace dryfly::generator {
namespace {

// Command 100 ns, egress 200 ns, fetching 400 ns, ingress 300 ns, completion 50 ns; one command each 10 ns.
Spec sample(const std::string& noise = {}, std::uint64_t seed = 1) {
  fabric::SampleMachine machine;
  machine.seed = seed;
  machine.more += noise;
  machine.more +=
      "nic.inline_bytes 192\nnic.pushed_bytes 96\nnic.eager_bytes 18433\nnic.rendezvous_head_bytes "
      "2048\nnic.egress_latency_ps 200000\n"
      "nic.dma_read_latency_ps 400000\nnic.ingress_latency_ps 300000\nnic.command_interval_ps 10000\nnic.list_entries "
      "16384\nnic.list_entries_share_ppm 1000000\n"
      "nic.command_latency_ps 100000\nnic.completion_latency_ps 50000\nnode.local_latency_ps 1000\n"
      "node.local_rate_bytes_per_s 1000000000\nnode.copy_ps 1000\n";
  return machine.spec();
}

std::uint64_t latency_ps(Stand& stand, Verb verb, NicId a, NicId b, Bytes size, std::uint64_t count) {
  const std::vector<std::uint64_t> times = latencies_ps(stand, verb, a, b, size, count);
  CHECK(times.size() == count);
  return std::accumulate(times.begin(), times.end(), std::uint64_t{0}) / count;
}

// Nodes 0 and 1 are on one switch: two links of 10 ns and a switch of 350 ns, and b bytes with their header of 64
// take 40 ps a byte.
constexpr std::uint64_t way_ps = 370'000;
constexpr std::uint64_t frame_ps(std::uint64_t bytes) { return (bytes + 64) * 40; }

TEST_CASE("a message takes what is written: command, egress, way, ingress, completion") {
  const Spec spec = sample();
  Stand stand(spec);
  CHECK(latency_ps(stand, Verb::send, {0}, {1}, Bytes{8}, 5) ==
        100'000 + 200'000 + way_ps + frame_ps(8) + 300'000 + 50'000);
}

TEST_CASE("a write is complete when its acknowledgement of 32 bytes is home, a read when the data is placed") {
  const Spec spec = sample();
  Stand writes(spec);
  CHECK(latency_ps(writes, Verb::write, {0}, {1}, Bytes{8}, 3) >=
        100'000 + 200'000 + way_ps + frame_ps(8) + way_ps + 32 * 40 + 50'000);
  Stand reads(spec);
  CHECK(latency_ps(reads, Verb::read, {0}, {1}, Bytes{8}, 3) ==
        100'000 + 200'000 + way_ps + frame_ps(0) + 300'000 + 400'000 + way_ps + frame_ps(8) + 300'000 + 50'000);
}

TEST_CASE("a stream of large writes runs at the link's rate less the headers, both ways at twice that") {
  const Spec spec = sample();
  Stand one(spec);
  // 200 x 64 KiB at 25 GB/s x 2048/2112 take 540.67 us; filling and draining the pipe some 2 us more.
  const std::uint64_t one_way = stream_ps(one, Verb::write, {0}, {1}, Bytes{65536}, 200, 16, false);
  CHECK(one_way >= 540'672'000);
  CHECK(one_way <= 545'000'000);
  Stand two(spec);
  const std::uint64_t both = stream_ps(two, Verb::write, {0}, {1}, Bytes{65536}, 200, 16, true);
  CHECK(both >= one_way);
  CHECK(both <= one_way + one_way / 10);  // acknowledgements share the links with data
}

TEST_CASE("in a ring every rank exchanges with both neighbours, and with a barrier waits for the slowest") {
  const Spec spec = sample();
  Stand stand(spec);
  std::vector<NicId> all;
  for (std::uint32_t nic = 0; nic < 8; ++nic) all.push_back({nic});
  const CpuCosts costs{.send = Duration{7000},
                       .send_fetched = Duration{7000},
                       .receive = Duration{3000},
                       .sent = Duration{5000},
                       .received = Duration{5000}};
  const auto times = ring_ps(stand, all, {.size = Bytes{8}, .rings = 2, .iterations = 3}, costs).iterations_ps;
  CHECK(times.size() == all.size() * 6);
  // Two receives and a send, the way, and a completion: a neighbour's second send comes later, never sooner.
  const std::uint64_t least = 6000 + 7000 + 100'000 + 200'000 + way_ps + frame_ps(8) + 300'000 + 50'000 + 5000;
  CHECK(*std::min_element(times.begin(), times.end()) >= least - 13'000);  // a neighbour may be that much ahead
  CHECK(*std::max_element(times.begin(), times.end()) <= least + 7000 + 5000 + 13'000 + 730'000 + 20'000);
  Stand other(spec);
  const auto met =
      ring_ps(other, all, {.size = Bytes{65536}, .iterations = 2, .outstanding = 4, .barrier = true}, costs)
          .iterations_ps;
  CHECK(met.size() == all.size() * 2);
  // 2 x 4 x 64 KiB leave each NIC at 24.24 GB/s at most, then three messages of the barrier.
  const std::uint64_t wire_ps = 8 * 65536 / 2048 * frame_ps(2048);
  CHECK(*std::min_element(met.begin(), met.end()) >= wire_ps);
  CHECK(*std::max_element(met.begin(), met.end()) - *std::min_element(met.begin(), met.end()) < 2'000'000);
}

TEST_CASE("four ranks sum in two messages behind each other, six in three") {
  const Spec spec = sample();
  // Of six, rank 5 gives its value to 1, which exchanges with 0, which exchanges with 2; what 0 gives back to 4 starts
  // at the same time as its last exchange.
  // All on the two NICs of one switch and its neighbour: at most two switches and three links.
  const std::uint64_t near = 7000 + 100'000 + 200'000 + frame_ps(8) + 300'000 + 50'000 + 5000;
  for (const auto& [ranks, messages] : {std::pair{4U, 2U}, std::pair{6U, 3U}}) {
    Stand stand(spec);
    std::vector<NicId> nics;
    for (std::uint32_t nic = 0; nic < ranks; ++nic) nics.push_back({nic});
    const std::uint64_t time = allreduce_ps(stand, nics, Bytes{8}, 2,
                                            {.send = Duration{7000},
                                             .send_fetched = Duration{7000},
                                             .receive = Duration{3000},
                                             .sent = Duration{5000},
                                             .received = Duration{5000}});
    CHECK(time >= messages * (near + 370'000));
    CHECK(time <= messages * (near + 730'000 + 20'000));
  }
}

TEST_CASE("a window takes the calls of its sends, the last message's way, and that of the answer") {
  const Spec spec = sample();
  Stand stand(spec);
  const CpuCosts costs{.send = Duration{7000},
                       .send_fetched = Duration{7000},
                       .receive = Duration{3000},
                       .sent = Duration{5000},
                       .received = Duration{5000}};
  // Two pairs at once, each on its own NICs, and two windows of three messages: the NIC takes a command each 10 ns.
  const std::vector<std::uint64_t> times =
      windows_ps(stand, {{0}, {2}, {1}, {3}}, {.size = Bytes{8}, .count = 2, .window = 3}, costs);
  const std::uint64_t last = 7000 + 100'000 + 2 * 10'000 + 200'000 + way_ps + frame_ps(8) + 300'000 + 50'000 + 5000;
  const std::uint64_t answer = 7000 + 100'000 + 200'000 + way_ps + frame_ps(4) + 300'000 + 50'000 + 5000;
  CHECK(times == std::vector<std::uint64_t>(2, 2 * (last + answer)));
  // Both ranks wait for the other's last message; the ones before it have been seen when it comes.
  Stand awaited(spec);
  CpuCosts with_wake = costs;
  with_wake.wake = Duration{1000};
  const Windows plan{.size = Bytes{8}, .count = 2, .window = 3};
  CHECK(windows_ps(awaited, {{0}, {1}}, plan, with_wake)[0] == 2 * (last + answer + 2 * with_wake.wake.ps));
  // What is fetched from memory has left when its acknowledgement is home, which is before the answer.
  Stand large(spec);
  const std::uint64_t time_ps =
      windows_ps(large, {{0}, {1}}, {.size = Bytes{16384}, .count = 1, .window = 64}, costs)[0];
  CHECK(time_ps >= 64 * 8 * frame_ps(2048));
  CHECK(time_ps <= 64 * 8 * frame_ps(2048) + 2 * (answer + 700'000));
}

TEST_CASE("uniform traffic is delivered at most at the rate of the links, and below saturation of a small machine") {
  const Spec spec = sample();
  Stand stand(spec);
  std::vector<NicId> all;
  for (std::uint32_t nic = 0; nic < stand.topology().nic_count(); ++nic) all.push_back({nic});
  const double rate = uniform_bytes_per_s(stand, all, Bytes{8192}, 40, 4, 3) / static_cast<double>(all.size());
  CHECK(rate < 24.3e9);
  CHECK(rate > 2e9);
}

// One detour of 5 us in each 100 us on each core, anywhere in it.
const std::string detours =
    "noise.sources 1\nnoise.start_skew_ps 2000000\nnoise.cores 4\nnoise.0.on each core\nnoise.0.instants random\n"
    "noise.0.period_ps 100000000\nnoise.0.least_ps 5000000\nnoise.0.most_ps 5000000\nnoise.0.chance_ppb 1000000000\n";

std::vector<NicId> first_nics(std::uint32_t count) {
  std::vector<NicId> nics;
  for (std::uint32_t nic = 0; nic < count; ++nic) nics.push_back({nic});
  return nics;
}

TEST_CASE("a pattern's rank has the detours of a real rank of that seed, node and place on its node") {
  const Spec spec = sample(detours);
  const Stand stand(spec);
  // Ranks 1 and 2 are the first and the second of one node.
  const std::vector<NicId> nics{{0}, {1}, {1}};
  Cores cores(stand, nics);
  const NoiseSettings settings = read_noise(spec);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Noise noise;
    NoiseTaken taken{};
    noise.begin(settings, stand.topology().node_of(nics[rank]).value, rank == 2 ? 1 : 0, 0, taken);
    CHECK(cores.begin(rank).ps == noise.resume_ps(noise.start_skew_ps()));
    std::uint64_t at = 0;
    for (int n = 0; n < 100; ++n) {
      const std::uint64_t end = at + noise.duration_ps(at, 33'000'000);
      CHECK(cores.after(rank, Instant{at}, Duration{33'000'000}).ps == end);
      at = end;
    }
    CHECK(taken.detours > 0);
  }
}

TEST_CASE("patterns with noise repeat, take longer than without, and are others with another seed") {
  const CpuCosts costs{.send = Duration{7000},
                       .send_fetched = Duration{7000},
                       .receive = Duration{3000},
                       .sent = Duration{5000},
                       .received = Duration{5000}};
  const auto allreduces = [&](const std::string& noise, std::uint64_t seed = 1) {
    const Spec spec = sample(noise, seed);
    Stand stand(spec);
    return allreduces_ps(stand, first_nics(6), {.size = Bytes{8}, .iterations = 200}, costs);
  };
  const auto rings = [&](const std::string& noise, std::uint64_t seed = 1) {
    const Spec spec = sample(noise, seed);
    Stand stand(spec);
    const Ring ring{.size = Bytes{8}, .rings = 2, .warmup = 10, .iterations = 100, .barrier = true};
    return ring_ps(stand, first_nics(8), ring, costs).iterations_ps;
  };
  const auto sum = [](const std::vector<std::uint64_t>& of) {
    return std::accumulate(of.begin(), of.end(), std::uint64_t{0});
  };
  CHECK(allreduces(detours) == allreduces(detours));
  CHECK(allreduces(detours) != allreduces(detours, 2));
  CHECK(sum(allreduces(detours)) > sum(allreduces({})));
  CHECK(rings(detours) == rings(detours));
  CHECK(rings(detours) != rings(detours, 2));
  CHECK(sum(rings(detours)) > sum(rings({})));
}

TEST_CASE("in a loop an allreduce of four ranks takes each of them two messages behind each other") {
  const Spec spec = sample();
  Stand stand(spec);
  const CpuCosts costs{.send = Duration{7000},
                       .send_fetched = Duration{7000},
                       .receive = Duration{3000},
                       .sent = Duration{5000},
                       .received = Duration{5000}};
  const auto times = allreduces_ps(stand, first_nics(4), {.size = Bytes{8}, .warmup = 2, .iterations = 50}, costs);
  CHECK(times.size() == 4 * 50);
  const std::uint64_t near = 10'000 + 100'000 + 200'000 + frame_ps(8) + 300'000 + 50'000 + 5000;
  const std::uint64_t mean = std::accumulate(times.begin(), times.end(), std::uint64_t{0}) / times.size();
  CHECK(mean >= 2 * (near + 320'000));
  CHECK(mean <= 2 * (near + 730'000 + 20'000));
}

TEST_CASE("a wait that is over in a detour ends with it, and commands with a gap begin so much later") {
  const Spec silent = sample();
  Stand alone(silent);
  const auto times = latencies_ps(alone, Verb::write, {0}, {1}, Bytes{8}, 50, Duration{1'000'000});
  CHECK(alone.now().ps >= 49 * 1'000'000 + times.front() * 50 - 50 * 100'000);
  const Spec noisy = sample(detours);
  Stand stand(noisy);
  // Of 2000 writes of some 2 us each, with detours in 5 % of the time, about one in ten meets a detour, and none is
  // longer for it by more than the detour's length.
  auto met = latencies_ps(stand, Verb::write, {0}, {1}, Bytes{8}, 2000);
  std::sort(met.begin(), met.end());
  CHECK(met[met.size() * 8 / 10] < times.front() + 100'000);
  CHECK(met.back() > times.front() + 2'000'000);
  CHECK(met.back() < times.front() + 5'100'000);
}

}  // namespace
}  // namespace dryfly::generator
