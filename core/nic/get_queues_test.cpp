#include "core/nic/get_queues.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/unit/random.hpp"

namespace dryfly::nic {
namespace {

constexpr std::uint64_t KiB = 1024;

struct Stub final : Carrier {
  void connect(TransferSink& told) override { sink = &told; }
  void attach(HostBus&) override {}
  void submit(const Transfer& transfer) override { submitted.push_back(transfer); }
  bool takes_ordered() const override { return true; }

  TransferSink* sink = nullptr;
  std::vector<Transfer> submitted;
};

struct Listener final : TransferSink {
  void delivered(std::uint32_t handle, std::uint32_t) override { log.push_back("delivered " + item(handle)); }
  void acknowledged(std::uint32_t handle) override { log.push_back("acknowledged " + item(handle)); }
  void failed(std::uint32_t handle, bool delivered) override {
    log.push_back((delivered ? "failed, delivered " : "failed ") + item(handle));
  }
  static std::string item(std::uint32_t handle) { return std::to_string(Parcel::of_handle(handle).item); }

  std::vector<std::string> log;
};

struct Bench final : GetQueues::Owner {
  explicit Bench(std::uint32_t of_rendezvous = 1, std::uint32_t of_reads = 1, std::uint64_t window = 128 * KiB)
      : queues(below,
               {.of_rendezvous = of_rendezvous, .of_reads = of_reads, .window = Bytes{window}, .packet = Bytes{2048}},
               *this) {
    queues.connect(told);
  }

  bool is_asked_by_software(std::uint32_t message) const override { return message == by_software; }
  void begins(std::uint32_t handle) override { begun.push_back(Parcel::of_handle(handle).item); }

  void answer(std::uint32_t item, std::uint64_t bytes, NicId target = {7}, Step step = Step::get_data,
              TrafficClass traffic_class = TrafficClass::best_effort) {
    queues.submit({.source = {1},
                   .target = target,
                   .size = Bytes{bytes},
                   .handle = Parcel{step, item}.handle(),
                   .traffic_class = traffic_class,
                   .ordered = false});
  }
  std::vector<std::uint64_t> sizes() const {
    std::vector<std::uint64_t> result;
    for (const Transfer& part : below.submitted) result.push_back(part.size.count / KiB);
    return result;
  }
  void deliver(std::size_t part) { below.sink->delivered(below.submitted[part].handle, 1); }
  void acknowledge(std::size_t part) { below.sink->acknowledged(below.submitted[part].handle); }
  void fail(std::size_t part, bool delivered) { below.sink->failed(below.submitted[part].handle, delivered); }

  std::uint32_t by_software = 99;
  std::vector<std::uint32_t> begun;
  Stub below;
  Listener told;
  GetQueues queues;
};

using Sizes = std::vector<std::uint64_t>;
using Log = std::vector<std::string>;

TEST_CASE("what is one packet, no answer, or has no queues of its kind goes by as it is") {
  Bench bench(1, 0);
  for (const Step step : {Step::message, Step::rma_request, Step::rma_response}) bench.answer(1, 100 * KiB, {7}, step);
  bench.answer(2, 2 * KiB);
  CHECK(bench.sizes() == Sizes{100, 100, 100, 2});
  bench.deliver(3);
  bench.acknowledge(3);
  CHECK(bench.told.log == Log{"delivered 2", "acknowledged 2"});
}

TEST_CASE("a queue gets one thing after the other, and the next begins when half of the window is free") {
  Bench bench;
  bench.answer(10, 256 * KiB);
  bench.answer(11, 256 * KiB);
  CHECK(bench.sizes() == Sizes{128, 64});
  // The last part of the first sets out; with the one before it that is all of the window.
  bench.deliver(0);
  CHECK(bench.sizes() == Sizes{128, 64, 64});
  bench.deliver(1);
  CHECK(bench.begun == std::vector<std::uint32_t>{10, 11});
  CHECK(bench.sizes() == Sizes{128, 64, 64, 128, 64});
  CHECK(bench.told.log.empty());
  bench.deliver(2);
  for (const std::size_t part : {2, 0, 1}) bench.acknowledge(part);
  CHECK(bench.told.log == Log{"delivered 10", "acknowledged 10"});
}

TEST_CASE("short Gets of a queue are under way together as far as the window goes") {
  Bench bench;
  for (std::uint32_t item = 0; item < 6; ++item) bench.answer(item, 30'000);
  CHECK(bench.below.submitted.size() == 4);
}

TEST_CASE("what software asks for goes by the queues of commands") {
  Bench bench(1, 1);
  bench.by_software = 2;
  bench.answer(1, 256 * KiB);
  bench.answer(2, 256 * KiB);
  bench.answer(3, 256 * KiB, {7}, Step::rma_response);
  CHECK(bench.begun == std::vector<std::uint32_t>{1, 2});
  Bench none(1, 0);
  none.by_software = 2;
  none.answer(2, 256 * KiB);
  CHECK(none.sizes() == Sizes{256});
}

TEST_CASE("everything comes, however small the window and whatever the size") {
  for (const std::uint64_t packets : {1, 2, 3, 5}) {
    for (const std::uint64_t bytes : {2049, 4095, 4096, 6145, 100'001}) {
      Bench bench(1, 1, packets * 2048);
      bench.answer(1, bytes);
      bench.answer(2, bytes);
      for (std::size_t part = 0; part < bench.below.submitted.size(); ++part) {
        bench.deliver(part);
        bench.acknowledge(part);
      }
      CHECK(bench.told.log == Log{"delivered 1", "acknowledged 1", "delivered 2", "acknowledged 2"});
    }
  }
}

TEST_CASE("queues of other NICs, kinds and classes go on by themselves") {
  Bench bench;
  bench.answer(1, 256 * KiB);
  bench.answer(2, 256 * KiB, {8});
  bench.answer(3, 256 * KiB, {7}, Step::rma_response);
  bench.answer(4, 256 * KiB, {7}, Step::get_data, TrafficClass::low_latency);
  CHECK(bench.sizes() == Sizes{128, 64, 128, 64, 128, 64, 128, 64});
}

TEST_CASE("a NIC gets from several at once, at most as many as it has queues, and after a restart as before") {
  Bench bench(4);
  const auto begun_at_once = [&] {
    const std::size_t before = bench.below.submitted.size();
    bench.begun.clear();
    for (std::uint32_t item = 0; item < 20; ++item) bench.answer(item, 1024 * KiB);
    const std::vector<std::uint32_t> begun = bench.begun;
    for (std::size_t part = before; part < bench.below.submitted.size(); ++part) {
      bench.deliver(part);
      bench.acknowledge(part);
    }
    return begun;
  };
  const std::vector<std::uint32_t> begun = begun_at_once();
  CHECK(begun.size() == 4);
  CHECK(begun_at_once() != begun);
  bench.queues.restart();
  CHECK(begun_at_once() == begun);
}

TEST_CASE("an answer is given up when the last of its parts is settled, and the next Get goes on") {
  Bench bench;
  bench.answer(1, 512 * KiB);
  bench.answer(2, 40 * KiB);
  CHECK(bench.sizes() == Sizes{256, 128});
  bench.fail(0, false);
  CHECK(bench.sizes() == Sizes{256, 128});
  CHECK(bench.told.log.empty());
  bench.deliver(1);
  CHECK(bench.sizes() == Sizes{256, 128, 40});
  bench.acknowledge(1);
  bench.deliver(2);
  bench.acknowledge(2);
  CHECK(bench.told.log == Log{"failed 1", "delivered 2", "acknowledged 2"});
}

TEST_CASE("an answer that is all there has failed when one of its acknowledgements never comes") {
  Bench bench;
  bench.answer(1, 100 * KiB);
  CHECK(bench.sizes() == Sizes{64, 36});
  bench.deliver(0);
  bench.deliver(1);
  bench.acknowledge(1);
  bench.fail(0, true);
  CHECK(bench.told.log == Log{"delivered 1", "failed, delivered 1"});
}

TEST_CASE("whatever the order in which parts come, each answer is told of once, when all of its bytes are there") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const RandomStream random{seed, 0, Purpose::packet};
    std::uint64_t draws = 0;
    Bench bench(3, 2);
    std::uint64_t asked = 0;
    std::uint32_t answers = 0;
    std::vector<std::size_t> under_way;
    for (int step = 0; step < 400 || !under_way.empty(); ++step) {
      const std::size_t before = bench.below.submitted.size();
      if (step < 400 && random.draw(draws++) % 2 == 0) {
        const std::uint64_t bytes = 2049 + random.draw(draws++) % 1'000'000;
        asked += bytes;
        bench.answer(answers, bytes, {answers % 2}, answers % 3 == 0 ? Step::rma_response : Step::get_data);
        ++answers;
      } else if (!under_way.empty()) {
        const std::size_t which = random.draw(draws++) % under_way.size();
        const std::size_t part = under_way[which];
        under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
        bench.deliver(part);
        bench.acknowledge(part);
      }
      for (std::size_t part = before; part < bench.below.submitted.size(); ++part) under_way.push_back(part);
    }
    std::uint64_t came = 0;
    for (const Transfer& part : bench.below.submitted) came += part.size.count;
    CHECK(came == asked);
    CHECK(bench.told.log.size() == 2 * answers);
  }
}

}  // namespace
}  // namespace dryfly::nic
