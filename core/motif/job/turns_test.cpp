#include "core/motif/job/turns.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "core/nic/get_queues.hpp"
#include "core/unit/random.hpp"
#include "testing/motif_stage.hpp"

namespace dryfly::motif {
namespace {

// Which answer a part is of, and its bytes.
using Part = std::pair<std::uint32_t, std::uint64_t>;
using Sent = std::vector<Part>;

constexpr std::uint32_t asking_nic = 7;

// The NICs' own queues, over a network that delivers in the order in which it is given.
struct OfNics final : Carrier, TransferSink, nic::GetQueues::Owner {
  explicit OfNics(const nic::GetQueueSpec& spec) : queues(*this, spec, *this) { queues.connect(*this); }

  void connect(TransferSink& below) override { sink = &below; }
  void attach(HostBus&) override {}
  bool takes_ordered() const override { return true; }
  void submit(const Transfer& transfer) override {
    sent.emplace_back(transfer.source.value, transfer.size.count);
    under_way.push_back(transfer.handle);
  }
  void delivered(std::uint32_t, std::uint32_t) override {}
  void acknowledged(std::uint32_t) override {}
  void failed(std::uint32_t, bool) override {}
  bool is_asked_by_software(std::uint32_t) const override { return false; }
  void begins(std::uint32_t) override {}

  void enter(std::uint32_t answer, std::uint64_t bytes) {
    queues.submit({.source = {answer},
                   .target = {asking_nic},
                   .size = Bytes{bytes},
                   .handle = nic::Parcel{nic::Step::get_data, answer}.handle(),
                   .ordered = false});
  }
  bool deliver() {
    if (under_way.empty()) return false;
    const std::uint32_t handle = under_way.front();
    under_way.pop_front();
    sink->delivered(handle, 0);
    sink->acknowledged(handle);
    return true;
  }

  Sent sent;
  std::deque<std::uint32_t> under_way;
  TransferSink* sink = nullptr;
  nic::GetQueues queues;
};

struct OfSkeletons {
  explicit OfSkeletons(const nic::GetQueueSpec& spec) : turns(spec, true) {}

  void enter(std::uint32_t answer, std::uint64_t bytes) {
    const std::uint32_t parts = pool.acquire();
    pool[parts] = {.bytes = bytes, .to_come = bytes, .held = bytes, .message = answer};
    turns.enter(pool, parts, asking_nic, Leg::data);
    advance(pool[parts].queue);
  }
  void advance(std::uint32_t queue) {
    for (;;) {
      const Turns::Granted granted = turns.grant(pool, queue);
      if (granted.parts == no_record) return;
      Parts& answer = pool[granted.parts];
      CHECK(Turns::of_one_part(answer) == granted.bytes);
      answer.left -= granted.bytes;
      sent.emplace_back(answer.message, granted.bytes);
      under_way.emplace_back(granted.parts, granted.bytes);
    }
  }
  bool deliver() {
    if (under_way.empty()) return false;
    const auto [parts, bytes] = under_way.front();
    under_way.pop_front();
    turns.end_part(pool[parts], bytes);
    advance(pool[parts].queue);
    return true;
  }

  PartsPool pool;
  Turns turns;
  Sent sent;
  std::deque<Part> under_way;
};

TEST_CASE("answers of skeletons leave in the parts, and in the order, in which NICs have them leave") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const nic::GetQueueSpec spec{.of_rendezvous = 1 + static_cast<std::uint32_t>(seed % 4),
                                 .window = Bytes{std::uint64_t{2048} << seed % 7},
                                 .packet = Bytes{2048}};
    OfNics nics(spec);
    OfSkeletons skeletons(spec);
    const RandomStream draws(seed, 0, Purpose::test);
    for (std::uint32_t step = 0; step < 100; ++step) {
      const std::uint64_t draw = draws.draw(step);
      if (draw % 3 == 0) {
        const std::uint64_t bytes = 2049 + (draw >> 8) % (std::uint64_t{1} << (12 + (draw >> 4) % 9));
        nics.enter(step, bytes);
        skeletons.enter(step, bytes);
      } else {
        CHECK(nics.deliver() == skeletons.deliver());
      }
    }
    while (nics.deliver()) CHECK(skeletons.deliver());
    CHECK_FALSE(skeletons.deliver());
    REQUIRE(nics.sent == skeletons.sent);
  }
}

TEST_CASE("loads that are known in their order end the parts that they are of") {
  Parts answer{.to_come = 300, .under_way = {100, 200}};
  CHECK(Turns::arrive(answer, 60) == 0);
  CHECK(Turns::arrive(answer, 40) == 1);
  CHECK(Turns::arrive(answer, 200) == 1);
}

// Three nodes have something for node 0, which has one queue: the first is through before the others have begun much.
TEST_CASE("what several have for one NIC comes one after the other where it has one queue") {
  for (const Way way : {Way::endpoints, Way::links, Way::network}) {
    std::vector<Instant> first_ends;
    for (const std::uint32_t queues : {0U, 1U}) {
      MotifStage stage(way, 4, 1, {}, [&](JobCosts& costs) {
        costs.get_queues = {.of_rendezvous = queues, .window = Bytes{4096}, .packet = Bytes{2048}};
      });
      std::vector<Instant> ends(4);
      stage.run([&](Rank& me) -> Task {
        if (me.id() > 0) co_await me.send(0, me.id(), Bytes{200'000});
        if (me.id() == 0) {
          const Pending second = me.irecv(2, 2);
          const Pending third = me.irecv(3, 3);
          co_await me.recv(1, 1);
          co_await me.wait(second, third);
        }
        ends[me.id()] = me.now();
      });
      first_ends.push_back(std::min({ends[1], ends[2], ends[3]}));
      // The link carries three payloads in any case.
      CHECK(ends[0].ps > std::uint64_t{3} * 200'000 * 40);
    }
    CHECK(first_ends[1].ps < first_ends[0].ps * 3 / 4);
  }
}

}  // namespace
}  // namespace dryfly::motif
