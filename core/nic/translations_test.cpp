#include "core/nic/translations.hpp"

#include "testing/test_stand.hpp"

using namespace dryfly;
using namespace dryfly::nic;

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint8_t base_page = 12;
constexpr std::uint8_t huge_page = 21;

// Two lines of four pages. A walk of base pages takes 600 ns, of longer ones 300, the processor 1,000; a link carries a
// byte in 40 ps, so a packet of 2,048 B in 81.92 ns and a page in 163.84.
NicSpec translating() {
  NicSpec spec = TestStand::round_figures();
  spec.link_rate = {25'000'000'000};
  spec.translation = {
      .lines = 2, .span_shift = 2, .walks = 2, .read = {300 * ns}, .ask = {1000 * ns}, .page_shift = base_page};
  return spec;
}

struct Rig {
  NicSpec spec = translating();
  Engine engine;
  CounterBank counters{engine};
  Translations translations{spec.translation, spec.link_rate, spec.framing.payload_max, counters};

  std::uint64_t read(const DmaPages& pages, std::uint64_t bytes, std::uint64_t at_ns, std::uint32_t nic = 0) {
    return translations.reading(NicId{nic}, pages, Bytes{bytes}, Instant{at_ns * ns}).ps;
  }
  std::uint64_t write(const DmaPages& pages, std::uint64_t bytes, std::uint64_t at_ns, std::uint32_t nic = 0) {
    return translations.writing(NicId{nic}, pages, Bytes{bytes}, Instant{at_ns * ns}).ps;
  }
  std::uint64_t counted(Counter counter, std::uint32_t nic = 0) {
    return counters.of(NicId{nic}).values[static_cast<std::size_t>(counter)];
  }
};

DmaPages pages_at(std::uint64_t page, std::uint8_t shift = base_page) { return {.page = page, .shift = shift}; }

}  // namespace

TEST_CASE("the first packet of a line walks the tables, and the others of its pages find it") {
  Rig rig;
  CHECK(rig.read(pages_at(0), 4 * page_bytes, 10'000) == 600 * ns);
  CHECK(rig.read(pages_at(3), page_bytes, 20'000) == 0);
  CHECK(rig.counted(Counter::atu_client_req_oxe) == 8 + 2);
  CHECK(rig.counted(Counter::atu_cache_miss) == 1);
  CHECK(rig.counted(Counter::atu_cache_miss_oxe) == 1);
  CHECK(rig.counted(Counter::atu_cache_hit_base_page_size) == 7 + 2);
  CHECK(rig.counted(Counter::atu_cache_evictions) == 0);
  // Each NIC has a cache of its own.
  CHECK(rig.read(pages_at(0), 8, 30'000, 1) == 600 * ns);
}

TEST_CASE("the line used longest ago makes room, so that a round over one more than there are finds none") {
  Rig rig;
  const std::uint64_t lines[] = {0, 4, 8};
  for (int round = 0; round < 2; ++round) {
    for (const std::uint64_t page : lines) CHECK(rig.read(pages_at(page), 8, 10'000) > 0);
  }
  CHECK(rig.counted(Counter::atu_cache_miss) == 6);
  CHECK(rig.counted(Counter::atu_cache_evictions) == 4);
  // Of as many as there are each is found from the second round on.
  rig.read(pages_at(4), 8, 50'000);
  const std::uint64_t missed = rig.counted(Counter::atu_cache_miss);
  for (int round = 0; round < 2; ++round) {
    for (const std::uint64_t page : {4, 8}) CHECK(rig.read(pages_at(page), 8, 60'000) == 0);
  }
  CHECK(rig.counted(Counter::atu_cache_miss) == missed);
}

TEST_CASE("a huge page is one translation, and its walk has a level less") {
  Rig rig;
  constexpr std::uint64_t huge_bytes = std::uint64_t{1} << huge_page;
  CHECK(rig.read(pages_at(0, huge_page), 4 * huge_bytes, 0) == 300 * ns);
  CHECK(rig.counted(Counter::atu_cache_miss) == 1);
  CHECK(rig.counted(Counter::atu_cache_hit_derivative1_page_size) == 4 * huge_bytes / 2048 - 1);
  CHECK(rig.counted(Counter::atu_cache_hit_base_page_size) == 0);
  // As base pages the same bytes are 512 lines.
  CHECK(rig.read(pages_at(0), 4 * huge_bytes, 1'000'000) == 600 * ns);
  CHECK(rig.counted(Counter::atu_cache_miss) == 1 + 512);
}

TEST_CASE("what comes in is late by a walk that begins near its end, and not by one before") {
  Rig rig;
  // 64 KiB come in 2,621.44 ns; the last of four lines is asked for 655.36 ns before the end.
  CHECK(rig.write(pages_at(0), 16 * page_bytes, 10'000) == 0);
  CHECK(rig.counted(Counter::atu_cache_miss_ixe) == 4);
  CHECK(rig.counted(Counter::atu_client_req_ixe) == 32);
  // 13 pages: the last line is asked for with the last page, 163.84 ns before the end.
  CHECK(rig.write(pages_at(100), 13 * page_bytes, 20'000) == 600 * ns - 163'840);
}

TEST_CASE("who asks for what is on its way waits for the rest of that walk") {
  Rig rig;
  CHECK(rig.read(pages_at(0), 8, 1000) == 600 * ns);
  CHECK(rig.read(pages_at(1), 8, 1200) == 400 * ns);
  CHECK(rig.counted(Counter::atu_cache_miss) == 1);
}

TEST_CASE("a NIC walks for so many at a time: one more waits") {
  Rig rig;
  CHECK(rig.read(pages_at(0), 8, 1000) == 600 * ns);
  CHECK(rig.read(pages_at(4), 8, 1000) == 600 * ns);
  CHECK(rig.read(pages_at(8), 8, 1000) == 1200 * ns);
}

TEST_CASE("without the cache each packet walks, and with the processor's translations each asks it") {
  Rig rig;
  DmaPages pages = pages_at(0);
  pages.kept = false;
  CHECK(rig.read(pages, 8, 1000) == 600 * ns);
  CHECK(rig.read(pages, 8, 5000) == 600 * ns);
  CHECK(rig.counted(Counter::atu_cache_miss) == 2);
  CHECK(rig.counted(Counter::atu_client_req_oxe) == 2);
  DmaPages asked = pages_at(64);
  asked.by_processor = true;
  CHECK(rig.read(asked, 8, 10'000) == 1000 * ns);
  CHECK(rig.read(asked, 8, 20'000) == 0);
}

namespace {

// Whose buffers all lie apart, by the token of their commands.
class Named final : public TestStand {
 public:
  using TestStand::TestStand;
  DmaPages buffer_pages(EndpointId, Token command) const override { return pages_at(command * 1024); }
  DmaPages target_pages(EndpointId, Token rma) const override { return pages_at(rma * 1024 + 512); }
};

}  // namespace

TEST_CASE("an eager message is late by its source's walk and by its target's, a second one by none") {
  const auto received = [](const NicSpec& spec) {
    Named stand(spec);
    stand.nics.receive(receive_of(2, 20));
    stand.nics.send(message(0, 2, 1000, 10));
    stand.at(10'000 * ns, [&] {
      stand.nics.receive(receive_of(2, 20));
      stand.nics.send(message(0, 2, 1000, 10));
    });
    stand.run();
    return stand.log;
  };
  // 100 + 300 to the wire, 1,000 there, 200: 1,600. 600 more, and as much from when its first byte has come, 40 ns
  // before its last.
  const auto log = received(translating());
  REQUIRE(log.size() == 4);
  CHECK(log[0] == "2760 received 10 in 20 at 2");
  CHECK(log[2] == "11600 received 10 in 20 at 2");
  CHECK(received(TestStand::round_figures())[0] == "1600 received 10 in 20 at 2");
}
