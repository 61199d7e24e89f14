#include "core/memory/long_copies.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace dryfly {
namespace {

constexpr std::uint64_t us = 1'000'000;
constexpr std::uint64_t GB = 1'000'000'000;

// Two sockets with one domain each, and whoever copies there.
class Stand {
 public:
  struct Parts {
    Stand* stand;
    std::uint32_t count() const { return shared.count(); }
    MovedMemory& account(std::uint32_t part) const { return *stand->moved_.at(part); }
    std::uint64_t room(std::uint32_t part) const { return MovedMemory::room(stand->rates[part]); }
  };
  static constexpr SharedParts shared{.domains = 2, .sockets = 2};

  std::map<std::uint32_t, std::uint64_t> rates;  // bytes/s of the parts

  Stand() {
    for (std::uint32_t part = 0; part < shared.count(); ++part) moved_.push_back(std::make_unique<MovedMemory>());
  }

  // A copy by a core of that rate, which begins then.
  void add(std::uint64_t begin_ps, std::uint64_t bytes, std::uint64_t rate, std::uint32_t from = 0,
           std::uint32_t to = 0, std::uint32_t domain = CopyEnd::no_domain) {
    const CopyEnd source{.memory_socket = from, .domain = domain};
    const CopyEnd target{.memory_socket = to, .domain = domain};
    waiting_.push_back({begin_ps, bytes * 1'000'000 / (rate / 1'000'000),
                        CopyLoads::through_memory(shared, {.socket = to}, source, target, bytes)});
  }
  void add_nic(std::uint64_t begin_ps, std::uint64_t bytes, std::uint64_t rate) {
    copies().take_first(begin_ps, bytes * 1'000'000 / (rate / 1'000'000), CopyLoads::by_nic(shared, 2, 0, 0, bytes));
  }
  // When each of those added is over. They go in the order of their instants.
  std::vector<std::uint64_t> ends() {
    std::vector<std::uint64_t> ends(waiting_.size());
    std::multimap<std::uint64_t, std::size_t> events;
    std::vector<std::size_t> places(waiting_.size());
    std::vector<bool> has_begun(waiting_.size());
    for (std::size_t n = 0; n < waiting_.size(); ++n) events.emplace(waiting_[n].begin_ps, n);
    while (!events.empty()) {
      const auto [now, n] = *events.begin();
      events.erase(events.begin());
      Copies::Progress progress{};
      if (!has_begun[n]) {
        places[n] = Copies::idle(copies_);
        if (places[n] == copies_.size()) copies_.emplace_back();
        progress = copies().begin(places[n], now, waiting_[n].alone_ps, waiting_[n].loads);
      } else {
        progress = copies().look(places[n], now);
      }
      has_begun[n] = true;
      CHECK(progress.at_ps >= now);
      if (progress.is_over) {
        ends[n] = progress.at_ps;
      } else {
        ++looks;
        events.emplace(progress.at_ps, n);
      }
    }
    CHECK(clock_.under_way == 0);
    waiting_.clear();
    return ends;
  }

  std::uint64_t looks = 0;

 private:
  using Copies = LongCopies<Parts>;
  struct Waiting {
    std::uint64_t begin_ps;
    std::uint64_t alone_ps;
    CopyLoads loads;
  };
  Copies copies() { return {clock_, copies_, Parts{this}}; }

  Copies::Clock clock_{};
  std::vector<LongCopy> copies_;
  std::vector<std::unique_ptr<MovedMemory>> moved_;
  std::vector<Waiting> waiting_;
};

std::uint64_t last(const std::vector<std::uint64_t>& ends) { return *std::max_element(ends.begin(), ends.end()); }
std::uint64_t first(const std::vector<std::uint64_t>& ends) { return *std::min_element(ends.begin(), ends.end()); }
double rate(std::uint64_t bytes, std::uint64_t ps) {
  return static_cast<double>(bytes) / static_cast<double>(ps) * 1e12;
}

}  // namespace

TEST_CASE("a long copy that nobody slows takes the time of its core to the picosecond, and is looked at once") {
  Stand stand;
  stand.rates = {{0, 200 * GB}};
  stand.add(7, 8'000'000, 8 * GB);
  CHECK(stand.ends() == std::vector<std::uint64_t>{1000 * us + 7});
  CHECK(stand.looks == 1);
}

TEST_CASE("copies that are alike end together, in the time that the memory takes for all of them") {
  for (const std::uint64_t cores : {2, 9, 28, 56}) {
    Stand stand;
    stand.rates = {{0, 200 * GB}};
    for (std::uint64_t core = 0; core < cores; ++core) stand.add(core, 8'000'000, 8 * GB);
    const auto ends = stand.ends();
    const std::uint64_t alone = 1000 * us;
    const std::uint64_t together = cores * 2 * 8'000'000 * 1000 / 200;
    CHECK(last(ends) >= std::max(alone, together));
    CHECK(last(ends) <= std::max(alone, together) + 2 * MovedMemory::interval_ps);
    CHECK(first(ends) >= last(ends) - 2 * MovedMemory::interval_ps);
    CHECK(stand.looks <= cores * 100);
  }
}

TEST_CASE("who comes while another copies slows it from there on, and it is as quick as before when that one is over") {
  Stand stand;
  stand.rates = {{0, 16 * GB}};  // one core's 8 GB/s, read and written
  stand.add(0, 8'000'000, 8 * GB);
  stand.add(500 * us, 1'000'000, 8 * GB);
  const auto ends = stand.ends();
  CHECK(static_cast<double>(ends[1]) == doctest::Approx(750.0 * us).epsilon(0.005));
  CHECK(static_cast<double>(ends[0]) == doctest::Approx(1125.0 * us).epsilon(0.005));
}

TEST_CASE("those whom the link between sockets slows leave the memory to others, and each is used up") {
  Stand stand;
  stand.rates = {{0, 100 * GB}, {Stand::shared.link(1, 0), 10 * GB}};
  for (int core = 0; core < 20; ++core) {
    stand.add(0, 8'000'000, 8 * GB);
    stand.add(0, 1'000'000, 4 * GB, 1, 0);
  }
  const auto ends = stand.ends();
  std::vector<std::uint64_t> near, far;
  for (std::size_t n = 0; n < ends.size(); ++n) (n % 2 == 0 ? near : far).push_back(ends[n]);
  // From afar 20 MB at 10 GB/s, of which the memory has 20; beside them 160 MB with 80 and then 100.
  CHECK(rate(20 * 1'000'000, last(far)) <= 10e9);
  CHECK(rate(20 * 1'000'000, last(far)) >= 9.8e9);
  CHECK(first(far) >= last(far) - 2 * MovedMemory::interval_ps);
  CHECK(static_cast<double>(last(near)) == doctest::Approx((2000.0 + (320.0 - 160.0) * 10.0) * us).epsilon(0.01));
  CHECK(first(near) >= last(near) - 2 * MovedMemory::interval_ps);
}

TEST_CASE("a domain carries no more than it does, whatever the memory of all could") {
  Stand stand;
  stand.rates = {{0, 200 * GB}, {Stand::shared.domain(1), 20 * GB}};
  for (int core = 0; core < 10; ++core) stand.add(0, 4'000'000, 8 * GB, 0, 0, 1);
  const std::uint64_t end = last(stand.ends());
  // Within an interval what is left of it may be taken at once.
  CHECK(rate(2 * 10 * 4'000'000, end + MovedMemory::interval_ps) <= 20e9);
  CHECK(rate(2 * 10 * 4'000'000, end) >= 19.8e9);
}

TEST_CASE("what NICs move comes first, and copies have the rest") {
  Stand stand;
  stand.rates = {{0, 100 * GB}};
  stand.add_nic(0, 100'000'000, 50 * GB);
  for (int core = 0; core < 10; ++core) stand.add(0, 4'000'000, 8 * GB);
  const std::uint64_t end = last(stand.ends());
  CHECK(rate(2 * 10 * 4'000'000, end) <= 50e9);
  CHECK(rate(2 * 10 * 4'000'000, end) >= 49e9);
}

TEST_CASE("short copies one after the other and a long one have the same share of what they want too much of") {
  Stand stand;
  stand.rates = {{0, 16 * GB}};
  stand.add(0, 8'000'000, 8 * GB);
  // 25 us apart, and a fifth of the rate: the long one has the rest.
  for (std::uint64_t n = 0; n < 40; ++n) stand.add(n * 25 * us, 40'000, 8 * GB);
  const auto ends = stand.ends();
  const std::uint64_t moved = 8'000'000 + 40 * 40'000;
  CHECK(rate(2 * moved, ends[0]) <= 16e9);
  CHECK(rate(2 * moved, ends[0]) >= 15.5e9);
  for (std::size_t n = 1; n < ends.size(); ++n) {
    CHECK(ends[n] - (n - 1) * 25 * us >= 5 * us);
    CHECK(ends[n] - (n - 1) * 25 * us <= 16 * us);
  }
}

TEST_CASE("one that takes longer than what is kept of the past gets its share all the same") {
  Stand stand;
  stand.rates = {{0, 16 * GB}};
  stand.add(0, 800'000'000, 8 * GB);
  stand.add(0, 800'000'000, 8 * GB);
  const auto ends = stand.ends();
  CHECK(rate(4 * 800'000'000ULL, last(ends)) <= 16e9);
  CHECK(rate(4 * 800'000'000ULL, last(ends)) >= 15.9e9);
  CHECK(first(ends) >= last(ends) - 2 * MovedMemory::interval_ps);
}

}  // namespace dryfly
