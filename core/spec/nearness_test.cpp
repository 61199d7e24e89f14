#include "core/spec/nearness.hpp"

#include <doctest/doctest.h>

namespace dryfly {
namespace {

// Two sockets of two L3 regions each.
constexpr char near_rows[] =
    "node.near.0.latency_ps 40\nnode.near.0.cached_bytes_per_s 28000000\nnode.near.0.memory_bytes_per_s 9000000\n"
    "node.near.1.latency_ps 200\nnode.near.1.cached_bytes_per_s 8000000\nnode.near.1.memory_bytes_per_s 9000000\n"
    "node.near.2.latency_ps 400\nnode.near.2.cached_bytes_per_s 4000000\nnode.near.2.memory_bytes_per_s 4000000\n"
    "node.near.regions 4\nnode.near.sockets 2\nnode.near.l2_bytes 1000\nnode.near.l2_bytes_per_s "
    "1000000\nnode.near.l3_bytes 16000\n";

}  // namespace

TEST_CASE("two ranks are of one region, of one socket or of two, by blocks of ranks and of cores") {
  const Nearness near = Nearness::read(Spec::parse(near_rows));
  CHECK(near.is_known());
  CHECK(near.distance(near.of_rank(0, 8), near.of_rank(1, 8)) == 0);
  CHECK(near.distance(near.of_rank(1, 8), near.of_rank(2, 8)) == 1);
  CHECK(near.distance(near.of_rank(3, 8), near.of_rank(4, 8)) == Nearness::across_sockets);
  CHECK(near.distance(near.of_rank(0, 2), near.of_rank(1, 2)) == Nearness::across_sockets);
  CHECK(near.of_core(0, 64) == CorePlace{.region = 0, .socket = 0});
  CHECK(near.of_core(31, 64) == CorePlace{.region = 1, .socket = 0});
  CHECK(near.of_core(32, 64) == CorePlace{.region = 2, .socket = 1});
  CHECK(near.way(near.of_core(0, 64), near.of_core(63, 64)).latency == Duration{400});
}

TEST_CASE("what stays in caches is half of a core's and of an even share of its region's among the ranks there") {
  const Nearness near = Nearness::read(Spec::parse(near_rows));
  CHECK(near.cached(0) == Bytes{8500});
  CHECK(near.cached(4) == Bytes{8500});
  CHECK(near.cached(5) == Bytes{4500});
  CHECK(near.cached(32) == Bytes{1500});
  CHECK(near.cached_of(1) == Bytes{8500});
  CHECK(near.cached_of(4) == Bytes{2500});
}

TEST_CASE("without rows all cores are alike") {
  const Nearness near = Nearness::read(
      Spec::parse("node.local_latency_ps 300\nnode.local_rate_bytes_per_s 12000000\nnode.cached_bytes 7\n"));
  CHECK_FALSE(near.is_known());
  CHECK(near.distance(near.of_rank(0, 2), near.of_rank(1, 2)) == 0);
  CHECK(near.way(0).latency == Duration{300});
  CHECK(near.way(2).memory == Rate{12'000'000});
  CHECK(near.cached(8) == Bytes{7});
}

}  // namespace dryfly
