#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>

#include "gpu/block.hpp"
#include "gpu/held.hpp"
#include "gpu/level_zero/types.hpp"
#include "gpu/memory.hpp"
#include "gpu/pools.hpp"
#include "gpu/settings.hpp"

namespace dryfly::gpu {

namespace {

constexpr char four[] = "devices=4 memory=1048576 call_ps=1 latency_ps=2 link_rate=3 peer_rate=4 memory_rate=5";

constexpr char four_hip[] = "runtime=hip devices=4 memory=1048576 peer_rate=10 links=0421401224011210";

std::unique_ptr<Memory> memory() {
  auto made = std::make_unique<Memory>();
  made->open(read_settings(four, {}));
  return made;
}

// The devices of the node that HIP sees with these masks, as "20".
std::string seen_by_hip(const Masks& masks) {
  const Settings settings = read_settings(four_hip, masks);
  std::string seen;
  for (int i = 0; i < settings.devices; ++i) seen += static_cast<char>('0' + settings.physical[i]);
  return seen;
}

// The tiles of the node that Level Zero sees with this mask, of three GPUs of two.
std::string seen_by_level_zero(const char* mask, const char* hierarchy = nullptr) {
  const Settings settings = read_settings("runtime=level-zero devices=6 tiles=2 peer_rate=10 tile_rate=90",
                                          {.level_zero = mask, .hierarchy = hierarchy});
  std::string seen;
  for (int i = 0; i < settings.devices; ++i) seen += static_cast<char>('0' + settings.physical[i]);
  return seen;
}

void* pointer_to(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

TEST_CASE("what the processor does to a device's memory itself is said where it can") {
  CHECK(!read_settings(four, {}).host_access);
  const Settings settings =
      read_settings("devices=1 host_access=1 load_latency_ps=7 load_rate=8 store_latency_ps=9 store_rate=10", {});
  CHECK(settings.host_access);
  CHECK(settings.load.latency_ps == 7);
  CHECK(settings.load.bytes_per_s == 8);
  CHECK(settings.store.latency_ps == 9);
  CHECK(settings.store.bytes_per_s == 10);
}

TEST_CASE("settings are read by name, and without them there is no device") {
  const Settings settings = read_settings(four, {});
  CHECK(settings.devices == 4);
  CHECK(settings.memory_bytes == 1048576);
  CHECK(settings.memory_bytes_per_s == 5);
  CHECK(read_settings(nullptr, {.cuda = "0"}).devices == 0);
}

TEST_CASE("a mask ends at the first word that is no device, and one that names a device twice leaves none") {
  const Settings settings = read_settings(four, {.cuda = "2,0,4,1"});
  REQUIRE(settings.devices == 2);
  CHECK(settings.physical[0] == 2);
  CHECK(settings.physical[1] == 0);
  for (const char* mask : {"", "-1", "4", "1,1", "one", "0x"}) CHECK(read_settings(four, {.cuda = mask}).devices == 0);
}

TEST_CASE("Level Zero's mask counts tiles, or GPUs with tiles below them, and leaves the order of the node") {
  CHECK(seen_by_level_zero(nullptr) == "012345");
  CHECK(seen_by_level_zero("") == "012345");
  CHECK(seen_by_level_zero("4,1,1,9") == "14");
  CHECK(seen_by_level_zero("4,1", "COMBINED") == "14");
  CHECK(seen_by_level_zero("9").empty());
  CHECK(seen_by_level_zero("2,0.1", "COMPOSITE") == "145");
  CHECK(seen_by_level_zero("1.2,1.1", "COMPOSITE") == "3");
}

TEST_CASE("structures of Level Zero are as long as the specification has them, on 64 bits") {
  using namespace level_zero;
  CHECK(sizeof(DeviceProperties) == 368);
  CHECK(sizeof(MemoryProperties) == 296);
  CHECK(sizeof(ComputeProperties) == 88);
  CHECK(sizeof(QueueGroup) == 40);
  CHECK(sizeof(PciProperties) == 48);
  CHECK(sizeof(PeerBandwidth) == 40);
  CHECK(sizeof(QueueDescription) == 40);
  CHECK(sizeof(ListDescription) == 24);
  CHECK(sizeof(PoolDescription) == 24);
  CHECK(sizeof(EventDescription) == 32);
  CHECK(sizeof(AllocationProperties) == 40);
}

TEST_CASE("two tiles of a GPU have a rate of their own") {
  const Settings settings = read_settings("runtime=level-zero devices=6 tiles=2 peer_rate=10 tile_rate=90", {});
  CHECK(peer_rate(settings, 2, 3) == 90);
  CHECK(peer_rate(settings, 1, 2) == 10);
  CHECK(peer_rate(read_settings(four_hip, {}), 1, 0) == 40);
}

TEST_CASE("HIP numbers what ROCR_VISIBLE_DEVICES has left, and heeds CUDA's mask where it has none of its own") {
  CHECK(seen_by_hip({}) == "0123");
  CHECK(seen_by_hip({.rocr = "3,1"}) == "31");
  CHECK(seen_by_hip({.hip = "2,0"}) == "20");
  CHECK(seen_by_hip({.cuda = "2,0"}) == "20");
  CHECK(seen_by_hip({.cuda = "0", .hip = "2"}) == "2");
  CHECK(seen_by_hip({.cuda = "0", .hip = ""}).empty());
  CHECK(seen_by_hip({.rocr = "3,1,2", .hip = "2,0"}) == "23");
  CHECK(seen_by_hip({.rocr = "3,1", .hip = "0,2"}) == "3");
}

TEST_CASE("a word that is no device ends ROCR's and HIP's masks, and one that is named again ends ROCR's alone") {
  CHECK(seen_by_hip({.rocr = "1,4,2"}) == "1");
  CHECK(seen_by_hip({.rocr = "1,1,2"}) == "1");
  CHECK(seen_by_hip({.rocr = " 1 ,0x2"}) == "12");
  CHECK(seen_by_hip({.hip = "1,1,2"}) == "12");
  CHECK(seen_by_hip({.hip = "1,02,3"}) == "1");
  CHECK(seen_by_hip({.hip = "1, 2"}) == "1");
  for (const char* mask : {"", "-1", "4", "one"}) {
    CHECK(seen_by_hip({.rocr = mask}).empty());
    CHECK(seen_by_hip({.hip = mask}).empty());
  }
}

TEST_CASE("links between devices are those of the pair by the node's numbers, whatever a mask leaves") {
  const Settings all = read_settings(four_hip, {});
  CHECK(all.links[0][1] == 4);
  CHECK(all.links[0][3] == 1);
  CHECK(all.links[1][3] == 2);
  const Settings masked = read_settings(four_hip, {.hip = "3,1"});
  CHECK(masked.links[masked.physical[0]][masked.physical[1]] == 2);
  CHECK(masked.links[masked.physical[1]][masked.physical[0]] == 2);
  CHECK(masked.links[0][1] == 4);
  CHECK(read_settings(four, {}).links[0][3] == 1);
}

TEST_CASE("a look at a pointer says its device and its allocation, up to its last byte") {
  const auto all = memory();
  std::uint64_t first = 0, second = 0;
  REQUIRE(all->device(0).allocate(1000, first));
  REQUIRE(all->device(3).allocate(8, second));
  CHECK(all->place_of(pointer_to(first + 999)).device == 0);
  CHECK(all->place_of(pointer_to(first + 999)).allocation.start == first);
  CHECK(all->place_of(pointer_to(first + 1000)).kind == Kind::host);
  CHECK(all->place_of(pointer_to(second)).device == 3);
  CHECK(all->place_of(&first).kind == Kind::host);
}

TEST_CASE("a device has no more than its memory, and what is freed can be had again and is zero") {
  const auto all = memory();
  std::uint64_t whole = 0, more = 0;
  REQUIRE(all->device(1).allocate(1048576, whole));
  CHECK_FALSE(all->device(1).allocate(1, more));
  std::memset(pointer_to(whole), 1, 1048576);
  CHECK_FALSE(all->device(1).free(whole + 512));
  CHECK(all->device(1).free(whole));
  CHECK_FALSE(all->device(1).free(whole));
  REQUIRE(all->device(1).allocate(4096, more));
  CHECK(*static_cast<char*>(pointer_to(more)) == 0);
}

TEST_CASE("allocations fill the first gap that is long enough") {
  const auto all = memory();
  std::uint64_t a = 0, b = 0, c = 0, again = 0;
  REQUIRE(all->pinned().allocate(512, a));
  REQUIRE(all->pinned().allocate(1024, b));
  REQUIRE(all->pinned().allocate(512, c));
  REQUIRE(all->pinned().free(b));
  REQUIRE(all->pinned().allocate(1025, again));
  CHECK(again > c);
  REQUIRE(all->pinned().allocate(1000, again));
  CHECK(again == b);
}

TEST_CASE("an allocation is aligned as it is asked to be, beside others, and has a number of its own") {
  const auto all = memory();
  Range& range = all->device(0);
  std::uint64_t first = 0, second = 0, third = 0;
  REQUIRE(range.allocate(100, first));
  REQUIRE(range.allocate(100, second, 4096));
  CHECK(second % 4096 == 0);
  REQUIRE(range.allocate(512, third));
  CHECK(third == first + 512);
  const std::uint64_t id = range.at(first)->id;
  CHECK(range.free(first));
  std::uint64_t again = 0;
  REQUIRE(range.allocate(100, again));
  CHECK(again == first);
  CHECK(range.at(again)->id != id);
}

TEST_CASE("short allocations share a chunk, and a long one has its own") {
  constexpr std::uint64_t chunk = 2 << 20;
  auto all = std::make_unique<Memory>();
  all->open(read_settings("devices=1 memory=16777216", {}));
  Range& range = all->device(0);
  std::uint64_t first = 0, second = 0, third = 0, longer = 0, last = 0;
  REQUIRE(range.allocate(1 << 20, first));
  CHECK(range.is_alone(*range.at(first)));
  REQUIRE(range.allocate(1000, second));
  CHECK(second == first + (1 << 20));
  CHECK_FALSE(range.is_alone(*range.at(first)));
  // What does not fit behind the others has the next chunk, and what is short the room that is left.
  REQUIRE(range.allocate(1 << 20, third));
  CHECK(third == first + chunk);
  CHECK(range.is_alone(*range.at(third)));
  CHECK(range.used() == 2 * chunk);
  REQUIRE(range.allocate(chunk + 1, longer));
  CHECK(longer == first + 2 * chunk);
  CHECK(range.used() == 4 * chunk);
  REQUIRE(range.allocate(1 << 20, last));
  CHECK(last == third + (1 << 20));
  CHECK(range.free(first));
  CHECK(range.is_alone(*range.at(second)));
  CHECK(range.free(longer));
  CHECK(range.used() == 2 * chunk);
  // Not into the chunks of a long one.
  REQUIRE(range.allocate(chunk + 1, longer));
  REQUIRE(range.allocate(1 << 20, first));
  REQUIRE(range.allocate(1 << 20, last));
  CHECK(last == longer + 2 * chunk);
}

TEST_CASE("memory of a pool goes to its own stream at once, and to others when that is over") {
  Memory all{};
  Timeline timeline{};
  Pending pending{};
  Waits waits{};
  auto pools = std::make_unique<Pools>();
  all.open(read_settings("devices=2 memory=67108864", {}));
  timeline.open(2);
  waits.open(timeline, pending);
  pools->open(2, all, timeline, waits);
  Stream* const one = timeline.create_stream(1, false);
  Stream* const other = timeline.create_stream(1, false);
  MemoryPool& pool = pools->standard(1);
  std::uint64_t first = 0, again = 0, elsewhere = 0;
  bool reserves = false;
  REQUIRE(pools->take(pool, 4096, *one, 0, first, reserves));
  CHECK(reserves);
  timeline.put(*one, Way::local, 1, 0, 1000);
  REQUIRE(pools->give_back(*all.device(1).at(first), 1, one, 10));
  CHECK(all.place_of(pointer_to(first)).kind == Kind::host);
  REQUIRE(pools->take(pool, 4096, *one, 20, again, reserves));
  CHECK(again == first);
  CHECK_FALSE(reserves);
  REQUIRE(pools->give_back(*all.device(1).at(again), 1, one, 30));
  REQUIRE(pools->take(pool, 4096, *other, 40, elsewhere, reserves));
  CHECK(elsewhere != first);
  REQUIRE(pools->take(pool, 512, *other, 1000, again, reserves));
  CHECK(again == first);
  pools->synchronised(1000);
  CHECK(pool.reserved == 32 << 20);
  REQUIRE(pools->give_back(*all.device(1).at(again), 1, nullptr, 1000));
  REQUIRE(pools->give_back(*all.device(1).at(elsewhere), 1, nullptr, 1000));
  CHECK(pool.used == 0);
  pools->synchronised(1000);
  CHECK(pool.reserved == 0);
  CHECK(pool.most_used == 4608);
}

TEST_CASE("tiles share their GPU's link, and all devices what their node carries") {
  const auto ends_ps = [](const char* rates) {
    Timeline timeline{};
    const std::string text = std::string("runtime=level-zero devices=4 tiles=2 ") + rates;
    timeline.open(4);
    timeline.share_links(read_settings(text.c_str(), {}));
    std::string ends;
    // A thousand bytes at a byte each picosecond, by each device at once, and back by one of them.
    for (const int device : {0, 1, 2}) {
      Stream* const stream = timeline.create_stream(device, false);
      ends += std::to_string(timeline.put(*stream, Way::in, device, 0, 1000, 1000)) + " ";
    }
    return ends + std::to_string(timeline.put(*timeline.create_stream(0, false), Way::out, 0, 0, 1000, 1000));
  };
  CHECK(ends_ps("") == "1000 1000 1000 1000");
  CHECK(ends_ps("gpu_link_rate=1000000000000") == "1000 2000 1000 1000");
  CHECK(ends_ps("gpu_link_rate=2000000000000") == "1000 1000 1000 1000");
  CHECK(ends_ps("node_in_rate=1000000000000") == "1000 2000 3000 1000");
}

TEST_CASE("host memory is registered once at a time") {
  const auto all = memory();
  char bytes[100];
  CHECK(all->add_host(bytes, 50, 0) == Memory::Registering::done);
  CHECK(all->add_host(bytes + 49, 10, 0) == Memory::Registering::overlaps);
  CHECK(all->place_of(bytes + 49).kind == Kind::registered);
  CHECK(all->remove_host(bytes));
  CHECK_FALSE(all->remove_host(bytes));
  CHECK(all->place_of(bytes + 49).kind == Kind::host);
}

TEST_CASE("pieces of host memory are found in whatever order they were registered") {
  const auto all = memory();
  char bytes[100];
  for (const int at : {60, 20, 80, 0, 40}) CHECK(all->add_host(bytes + at, 10, at) == Memory::Registering::done);
  CHECK(all->add_host(bytes + 15, 30, 0) == Memory::Registering::overlaps);
  CHECK(all->add_host(bytes + 69, 12, 0) == Memory::Registering::overlaps);
  CHECK(all->remove_host(bytes + 20));
  CHECK_FALSE(all->remove_host(bytes + 21));
  for (const int at : {0, 40, 60, 80}) {
    CHECK(all->place_of(bytes + at).device == at);
    CHECK(all->place_of(bytes + at + 9).device == at);
    CHECK(all->place_of(bytes + at + 10).kind == Kind::host);
  }
  CHECK(all->place_of(bytes + 20).kind == Kind::host);
  CHECK(all->add_host(bytes + 10, 30, 7) == Memory::Registering::done);
  CHECK(all->place_of(bytes + 39).device == 7);
}

namespace {

struct Seen {
  int before;  // threads that came to the first wait
  int wrong;
  int last;
};

// Every third thread ends first; the others wait for each other twice, and one of them waits deep in a call.
void waits(const void*, void** arguments) {
  auto& seen = *static_cast<Seen*>(arguments[0]);
  const unsigned thread =
      dryfly_thread_index.x + dryfly_block_shape.x * (dryfly_thread_index.y + 2 * dryfly_thread_index.z);
  if (thread % 3 == 0) return;
  volatile char room[20000];
  room[thread] = static_cast<char>(thread);
  ++seen.before;
  int voters = 0;
  const int even = dryfly_kernel_vote(thread % 2 == 0 ? 7 : 0, &voters);
  const int blocks = static_cast<int>(dryfly_block_index.x) + 1;
  if (seen.before != 16 * blocks || even != 8 || voters != 16 || room[thread] != static_cast<char>(thread))
    ++seen.wrong;
  dryfly_kernel_synchronize();
  ++seen.last;
}

}  // namespace

namespace {

// Streams of two devices, and what was done in them.
struct Doing {
  std::unique_ptr<Timeline> timeline = std::make_unique<Timeline>();
  std::unique_ptr<Pending> pending = std::make_unique<Pending>();
  std::unique_ptr<Waits> waits = std::make_unique<Waits>();
  std::uint64_t word = 0;
  std::uint64_t end_ps = 0;

  Doing() {
    timeline->open(2);
    waits->open(*timeline, *pending);
  }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(&word); }
  // Of that length; when it is over.
  std::uint64_t put(Stream& stream, std::uint64_t ps, std::uint64_t begin_ps = 0) {
    Held held{};
    held.step = Step::work;
    held.way = Way::host;
    held.begin_ps = begin_ps;
    held.ps = ps;
    CHECK(waits->put(stream, held, end_ps));
    return end_ps;
  }
  void wait(Stream& stream, std::uint64_t value, std::uint64_t begin_ps = 0) {
    if (waits->is_to_be_watched(address(), 8)) {
      REQUIRE(waits->watch(address(), 8));
      waits->written(address(), word, 8, 0);
    }
    Held held{};
    held.step = Step::wait;
    held.begin_ps = begin_ps;
    held.condition = {address(), value, ~std::uint64_t{0}, 8, Comparison::reached};
    CHECK(waits->put(stream, held, end_ps));
  }
  void record(Stream& stream, Event& event) {
    Held held{};
    held.step = Step::record;
    held.way = Way::host;
    held.event = &event;
    event.recorded = true;
    CHECK(waits->put(stream, held, end_ps));
  }
  void follow(Stream& stream, const Event& event) {
    Held held{};
    held.step = Step::follow;
    held.begin_ps = event.at_ps;
    held.awaited = event.ticket;
    CHECK(waits->put(stream, held, end_ps));
  }
  void write(std::uint64_t value, std::uint64_t at_ps) {
    word = value;
    waits->written(address(), value, 8, at_ps);
  }
};

bool meets(Comparison comparison, std::uint64_t word, std::uint64_t value, std::uint32_t bytes = 8,
           std::uint64_t mask = ~std::uint64_t{0}) {
  return is_met({0, value, mask, bytes, comparison}, word);
}

}  // namespace

TEST_CASE("words are compared as CUDA and HIP have it, in as many bits as they have") {
  CHECK(meets(Comparison::reached, 5, 5));
  CHECK(meets(Comparison::reached, 6, 5));
  CHECK_FALSE(meets(Comparison::reached, 4, 5));
  CHECK(meets(Comparison::reached, 2, ~std::uint64_t{0}));  // by their difference, round and round
  CHECK_FALSE(meets(Comparison::at_least, 2, ~std::uint64_t{0}));
  CHECK(meets(Comparison::reached, 1, 0xffffffff, 4));
  CHECK_FALSE(meets(Comparison::reached, 1, 0xffffffff));
  CHECK(meets(Comparison::equal, 0x1234, 0xff34, 8, 0xff));
  CHECK(meets(Comparison::common_bit, 6, 2));
  CHECK_FALSE(meets(Comparison::common_bit, 6, 1));
  CHECK(meets(Comparison::missing_bit, 6, 1));
  CHECK_FALSE(meets(Comparison::missing_bit, 0xfffffffe, 1, 4));
}

TEST_CASE("what is behind a wait goes on at the instant of the write, in order, and not before its own") {
  Doing work;
  Stream& stream = *work.timeline->create_stream(0, false);
  CHECK(work.put(stream, 10) == 10);
  work.wait(stream, 3, 12);
  CHECK(work.end_ps == Waits::no_instant);
  CHECK(work.put(stream, 5) == Waits::no_instant);
  CHECK(work.put(stream, 7, 200) == Waits::no_instant);
  CHECK(work.waits->holds(stream));
  work.write(2, 50);
  CHECK(work.waits->holds(stream));
  work.write(3, 100);
  CHECK_FALSE(work.waits->holds_any());
  CHECK(stream.end_ps == 207);
  work.wait(stream, 3, 300);  // it is so
  CHECK(work.end_ps == 300);
  CHECK(work.put(stream, 1) == 301);
}

TEST_CASE("an event behind a wait comes to pass behind it, for the streams that follow it too") {
  Doing work;
  Stream& first = *work.timeline->create_stream(0, false);
  Stream& second = *work.timeline->create_stream(1, false);
  Event& event = *work.timeline->create_event(true);
  work.wait(first, 1);
  CHECK(work.put(first, 20) == Waits::no_instant);
  work.record(first, event);
  CHECK(event.ticket != 0);
  work.follow(second, event);
  CHECK(work.put(second, 3) == Waits::no_instant);
  CHECK(work.waits->holds_of(1));
  work.write(1, 40);
  CHECK(event.ticket == 0);
  CHECK(event.at_ps == 60);
  CHECK(second.end_ps == 63);
}

TEST_CASE("the default stream waits for what waits in its device's others, and those put to work later for that") {
  Doing work;
  Stream& blocking = *work.timeline->create_stream(0, true);
  Stream& apart = *work.timeline->create_stream(0, false);
  Stream& standard = work.timeline->standard(0);
  work.wait(blocking, 1);
  CHECK(work.put(standard, 10) == Waits::no_instant);
  CHECK(work.put(blocking, 5) == Waits::no_instant);
  CHECK(work.put(apart, 5) == 5);
  CHECK(work.put(work.timeline->standard(1), 5) == 5);
  work.write(1, 100);
  CHECK_FALSE(work.waits->holds_any());
  CHECK(standard.end_ps == 110);
  CHECK(blocking.end_ps == 115);
}

TEST_CASE("a stream that is destroyed does what is behind its wait, and its place is taken then only") {
  Doing work;
  Stream* const stream = work.timeline->create_stream(0, false);
  work.wait(*stream, 1);
  CHECK(work.put(*stream, 5) == Waits::no_instant);
  work.timeline->destroy(*stream);
  CHECK(work.timeline->known(stream, 0) == nullptr);
  CHECK(work.timeline->create_stream(0, false) != stream);
  work.write(1, 10);
  CHECK(work.pending->first() != nullptr);
  CHECK(work.timeline->create_stream(0, false) == stream);
}

TEST_CASE("threads of a block wait for those that have not ended, on stacks of their own") {
  Seen seen{};
  void* arguments[] = {&seen};
  for (int launch = 1; launch <= 2; ++launch) {
    seen = {};
    run_blocks({3, 1, 1}, {6, 2, 2}, {waits, nullptr, arguments});
    CHECK(seen.before == 48);
    CHECK(seen.last == 48);
    CHECK(seen.wrong == 0);
  }
}

}  // namespace dryfly::gpu
