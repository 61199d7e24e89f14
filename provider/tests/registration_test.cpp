#include "provider/registration.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;

namespace {

constexpr std::size_t page = 4096;

// Sums tell the parts apart.
constexpr wire::RegistrationCosts registration{.map_ps = 1'000'000,
                                               .map_page_ps = 1'000,
                                               .unmap_ps = 100'000'000,
                                               .unmap_page_ps = 100'000,
                                               .watch_ps = 7,
                                               .link_ps = 3,
                                               .fault_ps = 50'000,
                                               .page_bytes = page,
                                               .translates = 1};
constexpr std::uint64_t mapped(std::uint64_t pages) { return 1'000'000 + pages * 1'000; }
constexpr std::uint64_t unmapped(std::uint64_t pages) { return 100'000'000 + pages * 100'000; }

using Settings = std::vector<std::pair<std::string, std::string>>;

// A machine on which registering costs something, and settings, for as long as it lives.
class Machine {
 public:
  explicit Machine(Settings settings = {}, wire::RegistrationCosts costs = registration)
      : settings_(std::move(settings)) {
    for (const auto& [name, value] : settings_) setenv(name.c_str(), value.c_str(), 1);
    fake_run().header->costs.registration = costs;
    fake_run().page->times.registered = {};
  }
  ~Machine() {
    for (const auto& [name, value] : settings_) unsetenv(name.c_str());
    fake_run().header->costs.registration = {};
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

 private:
  Settings settings_;
};

// Whole pages of their own.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : begin_(static_cast<char*>(
            mmap(nullptr, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        bytes_(count * page) {}
  ~Pages() { munmap(begin_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* at(std::size_t offset) const { return begin_ + offset; }

 private:
  char* begin_;
  std::size_t bytes_;
};

const wire::RegistrationCounts& counts() { return fake_run().page->times.registered; }

// What a receive into these bytes costs beyond the call.
std::uint64_t receive(const Rig& rig, void* buffer, std::size_t length) {
  const std::uint64_t before = rig.run.now_ps();
  REQUIRE(fi_trecv(rig.endpoint, buffer, length, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr) == 0);
  return rig.run.now_ps() - before - costs.receive_ps;
}

std::uint64_t send(const Rig& rig, const void* buffer, std::size_t length) {
  const std::uint64_t before = rig.run.now_ps();
  REQUIRE(fi_tsend(rig.endpoint, buffer, length, nullptr, 2, 1, nullptr) == 0);
  return rig.run.now_ps() - before - (length > 192 ? costs.send_fetched_ps : costs.send_ps);
}

}  // namespace

TEST_CASE("a buffer costs a mapping of its pages the first time, and nothing from then on") {
  const Machine machine;
  const Rig rig;
  constexpr std::size_t buffers = 5;
  constexpr std::size_t pages = 3;
  const Pages memory(buffers * pages);
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  for (std::size_t i = 0; i < buffers; ++i) first += receive(rig, memory.at(i * pages * page), pages * page);
  for (std::size_t i = 0; i < buffers; ++i) second += receive(rig, memory.at(i * pages * page), pages * page);
  CHECK(first == buffers * mapped(pages));
  CHECK(second == 0);
  CHECK(counts().misses == buffers);
  CHECK(counts().hits == buffers);
  CHECK(counts().mapped == buffers);
  CHECK(counts().mapped_pages == buffers * pages);
  CHECK(counts().mapped_bytes == buffers * pages * page);
  CHECK(counts().ps == first);
  // Any part of what is mapped is there too, for whatever is done with it.
  CHECK(send(rig, memory.at(pages * page + 1), 2 * page) == 0);
}

TEST_CASE("what shares its pages with a mapped buffer is mapped as well") {
  const Machine machine;
  const Rig rig;
  const Pages memory(2);
  CHECK(receive(rig, memory.at(100), 8) == mapped(1));
  CHECK(receive(rig, memory.at(3000), 8) == 0);
  CHECK(receive(rig, memory.at(page), 8) == mapped(1));
}

TEST_CASE("a buffer whose pages reach around a mapped one is mapped in vain, and again") {
  const Machine machine;
  const Rig rig;
  const Pages memory(2);
  CHECK(receive(rig, memory.at(0), 8) == mapped(1));
  // As libfabric: the bytes do not lie around the first page, but once the driver has made whole pages of them they do.
  // 16 bytes fill one page, wherever they begin.
  CHECK(receive(rig, memory.at(page - 8), 16) == mapped(1) + unmapped(1) + unmapped(1) + mapped(1));
  CHECK(counts().invalidated == 1);
  CHECK(receive(rig, memory.at(0), 2 * page) == 0);
}

TEST_CASE("without a cache each buffer costs a mapping and its end") {
  for (const auto& setting : {std::pair{"FI_MR_CACHE_MONITOR", "disabled"}, std::pair{"FI_MR_CACHE_MAX_COUNT", "0"}}) {
    const Machine machine(Settings{{setting.first, setting.second}});
    const Rig rig;
    const Pages memory(2);
    for (int i = 0; i < 2; ++i) CHECK(receive(rig, memory.at(0), 2 * page) == mapped(2) + unmapped(2));
    CHECK(counts().uncached == 2);
    CHECK(counts().misses == 0);
  }
}

TEST_CASE("beyond the most ranges the one used longest ago makes room") {
  const Machine machine(Settings{{"FI_MR_CACHE_MAX_COUNT", "2"}});
  const Rig rig;
  const Pages memory(3);
  const auto use = [&](std::size_t which) { return receive(rig, memory.at(which * page), page); };
  CHECK(use(0) == mapped(1));
  CHECK(use(1) == mapped(1));
  CHECK(use(0) == 0);
  CHECK(use(2) == unmapped(1) + mapped(1));  // in the place of 1
  CHECK(use(0) == 0);
  CHECK(use(1) == unmapped(1) + mapped(1));  // in the place of 2
  CHECK(counts().evicted == 2);
}

TEST_CASE("a cache that holds as many bytes as it may makes room for any") {
  const Machine machine(Settings{{"FI_MR_CACHE_MAX_SIZE", "8192"}});
  const Rig rig;
  const Pages memory(4);
  CHECK(receive(rig, memory.at(0), page) == mapped(1));
  CHECK(receive(rig, memory.at(page), 2 * page) == mapped(2));  // 4 KiB were less than 8
  CHECK(receive(rig, memory.at(3 * page), page) == unmapped(1) + unmapped(2) + mapped(1));
}

TEST_CASE("what the program gives back is mapped again when it comes back") {
  const Machine machine;
  const Rig rig;
  constexpr std::size_t bytes = 4 << 20;  // malloc maps it for itself
  void* memory = std::malloc(bytes);
  CHECK(receive(rig, memory, bytes) == mapped(bytes / page));
  CHECK(receive(rig, memory, bytes) == 0);
  std::free(memory);
  const Pages other(1);
  CHECK(receive(rig, other.at(0), 8) == unmapped(bytes / page) + mapped(1));
  CHECK(counts().invalidated == 1);
  CHECK(counts().evicted == 0);
}

TEST_CASE("memory that is advised away, moved or mapped over has gone") {
  const Machine machine;
  const Rig rig;
  const Pages memory(4);
  const auto use = [&](std::size_t which) { return receive(rig, memory.at(which * page), page); };
  for (std::size_t which = 0; which < 4; ++which) use(which);
  REQUIRE(madvise(memory.at(0), page, MADV_DONTNEED) == 0);
  REQUIRE(mmap(memory.at(page), page, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
          memory.at(page));
  void* moved = mremap(memory.at(2 * page), page, page, MREMAP_MAYMOVE | MREMAP_FIXED, memory.at(0));
  REQUIRE(moved == memory.at(0));
  CHECK(use(3) == 3 * unmapped(1));
  CHECK(use(0) == mapped(1));
  CHECK(use(1) == mapped(1));
  REQUIRE(madvise(memory.at(0), page, MADV_WILLNEED) == 0);
  CHECK(use(0) == 0);
}

TEST_CASE("a region keeps its mapping until it is closed, whatever else needs room") {
  const Machine machine(Settings{{"FI_MR_CACHE_MAX_COUNT", "1"}});
  const Rig rig;
  const Pages memory(2);
  const std::uint64_t before = rig.run.now_ps();
  fid_mr* region = nullptr;
  REQUIRE(fi_mr_reg(rig.domain, memory.at(0), page, FI_REMOTE_READ, 0, 7, 0, &region, nullptr) == 0);
  CHECK(rig.run.now_ps() - before == mapped(1));
  CHECK(receive(rig, memory.at(page), page) == mapped(1) + unmapped(1));  // there is no room for it at all
  CHECK(receive(rig, memory.at(0), page) == 0);
  REQUIRE(fi_close(&region->fid) == 0);
  CHECK(receive(rig, memory.at(page), page) == unmapped(1) + mapped(1));
  CHECK(counts().regions == 1);
}

TEST_CASE("a region's list entry costs its link and its end, but not where the NIC keeps entries for all of them") {
  const Machine machine;
  for (const int mode : {0, static_cast<int>(FI_MR_PROV_KEY)}) {
    const Rig rig(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION, mode);
    const Pages memory(1);
    fid_mr* region = nullptr;
    REQUIRE(fi_mr_reg(rig.domain, memory.at(0), page, FI_REMOTE_READ, 0, 7, 0, &region, nullptr) == 0);
    REQUIRE(fi_mr_bind(region, &rig.endpoint->fid, 0) == 0);
    const std::uint64_t before = rig.run.now_ps();
    REQUIRE(fi_mr_enable(region) == 0);
    REQUIRE(fi_close(&region->fid) == 0);
    CHECK(rig.run.now_ps() - before == (mode == 0 ? 2 * registration.link_ps : 0));
  }
}

TEST_CASE("longer pages are fewer") {
  wire::RegistrationCosts costs = registration;
  costs.page_bytes = 64 * 1024;
  const Machine machine({}, costs);
  const Rig rig;
  const Pages memory(256);
  CHECK(receive(rig, memory.at(0), 256 * page) == mapped(16));
  CHECK(counts().mapped_bytes == 256 * page);
}

TEST_CASE("a monitor of the kernel's is told of each range") {
  for (const char* monitor : {"kdreg2", "userfaultfd", "uffd"}) {
    const Machine machine(Settings{{"FI_MR_CACHE_MONITOR", monitor}});
    const Rig rig;
    const Pages memory(1);
    CHECK(receive(rig, memory.at(0), page) == mapped(1) + registration.watch_ps);
    CHECK(receive(rig, memory.at(0), page) == 0);
  }
}

TEST_CASE("pages on demand are not pinned, and the NIC's first access to each 64 KiB is a fault") {
  const Machine machine(Settings{{"FI_CXI_FORCE_ODP", "1"}});
  const Rig rig;
  const Pages memory(33);
  CHECK(receive(rig, memory.at(0), 33 * page) == registration.map_ps + 3 * registration.fault_ps);
  CHECK(receive(rig, memory.at(0), 33 * page) == 0);
  CHECK(counts().faults == 3);
}

TEST_CASE("translated by the processor and on demand, all memory is mapped once and for all") {
  const Machine machine(Settings{{"FI_CXI_FORCE_ODP", "1"}, {"FI_CXI_ATS", "1"}});
  const Rig rig;
  const Pages memory(2);
  CHECK(receive(rig, memory.at(0), 2 * page) == 0);
  CHECK(counts().mapped == 0);
}

TEST_CASE("a machine without such translation goes on as if nobody had asked for it") {
  wire::RegistrationCosts costs = registration;
  costs.translates = 0;
  const Machine machine(Settings{{"FI_CXI_FORCE_ODP", "1"}, {"FI_CXI_ATS", "1"}}, costs);
  const Rig rig;
  const Pages memory(1);
  CHECK(receive(rig, memory.at(0), page) == registration.map_ps + registration.fault_ps);
}

TEST_CASE("only what the NIC moves by DMA is registered") {
  const Machine machine;
  const Rig rig;
  const Pages memory(2);
  CHECK(send(rig, memory.at(0), 192) == 0);
  CHECK(receive(rig, memory.at(0), 0) == 0);
  REQUIRE(fi_tinject(rig.endpoint, memory.at(0), 100, 2, 1) == 0);
  CHECK(counts().misses == 0);
  CHECK(send(rig, memory.at(0), 193) == mapped(1));
  const std::uint64_t before = rig.run.now_ps();
  REQUIRE(fi_read(rig.endpoint, memory.at(page), 8, nullptr, 2, 0, 7, nullptr) == 0);
  CHECK(rig.run.now_ps() - before == costs.rma_fetched_ps + mapped(1));
}

TEST_CASE("what an atomic brings back is registered, its operand only where the NIC fetches it") {
  const Machine machine;
  const Rig rig;
  const Pages memory(2);
  const auto fetch = [&](std::uint64_t key) {
    return fi_fetch_atomic(rig.endpoint, memory.at(0), 1, nullptr, memory.at(page), nullptr, 2, 0, key, FI_UINT64,
                           FI_SUM, nullptr);
  };
  constexpr std::uint64_t optimized = 7;
  constexpr std::uint64_t standard = 1000;
  REQUIRE(fetch(optimized) == 0);
  CHECK(counts().mapped == 1);
  REQUIRE(fetch(standard) == 0);
  CHECK(counts().mapped == 2);
}

TEST_CASE("where the machine does not say how long its pages are, registering costs nothing") {
  const Rig rig;
  fake_run().page->times.registered = {};
  const Pages memory(1);
  CHECK(receive(rig, memory.at(0), page) == 0);
  CHECK(counts().misses == 0);
}

TEST_CASE("buffers on the stack are found again") {
  const Machine machine;
  const Rig rig;
  alignas(page) char buffer[2 * page];
  CHECK(receive(rig, buffer, sizeof buffer) >= mapped(2));
  CHECK(receive(rig, buffer, sizeof buffer) == 0);
  CHECK(receive(rig, buffer + 5, 100) == 0);
}

TEST_CASE("memory on huge pages is mapped by whole ones, and there are few of them") {
  const Machine machine;
  const Rig rig;
  constexpr std::size_t huge = 2 << 20;
  const auto get = [](int flags) {
    return static_cast<char*>(
        mmap(nullptr, 4 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | flags, -1, 0));
  };
  char* memory = get(0);
  REQUIRE(memory != MAP_FAILED);
  CHECK(reinterpret_cast<std::uint64_t>(memory) % huge == 0);
  memory[0] = memory[4 * huge - 1] = 1;
  CHECK(receive(rig, memory + 100, 2 * huge) == mapped(2));
  CHECK(receive(rig, memory + 3 * huge - 1, 1) == 0);
  CHECK(counts().mapped_pages == 2);
  CHECK(counts().mapped_bytes == 2 * huge);
  REQUIRE(munmap(memory, 4 * huge) == 0);
  // Where a page of 4 MiB begins.
  memory = get(22 << 26);
  REQUIRE(memory != MAP_FAILED);
  CHECK(reinterpret_cast<std::uint64_t>(memory) % (2 * huge) == 0);
  CHECK(receive(rig, memory, 4 * huge) == unmapped(2) + mapped(2));
  REQUIRE(munmap(memory, 4 * huge) == 0);
  const Pages ordinary(1);
  CHECK(receive(rig, ordinary.at(0), 8) == unmapped(2) + mapped(1));
}

namespace {

wire::RegistrationCosts naming(std::uint64_t page_bytes = page) {
  wire::RegistrationCosts costs = registration;
  costs.page_bytes = page_bytes;
  costs.names_pages = 1;
  return costs;
}

// Where the NIC finds what a receive into these bytes names.
wire::BufferPages named(const Rig& rig, void* buffer, std::size_t length) {
  receive(rig, buffer, length);
  return wire::BufferPages::of(rig.run.pushed.back().command.pages);
}

}  // namespace

TEST_CASE("pages have names in the order in which they were mapped, wherever they lie") {
  const Machine machine({}, naming());
  const Rig rig;
  const Pages memory(8);
  const wire::BufferPages first = named(rig, memory.at(4 * page), 3 * page);
  CHECK(first.shift == 12);
  CHECK(first.kept);
  CHECK_FALSE(first.by_processor);
  CHECK(named(rig, memory.at(0), page).page == first.page + 3);
  CHECK(named(rig, memory.at(5 * page + 100), 8).page == first.page + 1);
  // What has a line's pages or more begins with a line, and what has gone and comes back has other names.
  const Pages longer(9);
  CHECK(named(rig, longer.at(0), 9 * page).page == (first.page + 4 + 7) / 8 * 8);
  REQUIRE(madvise(memory.at(0), page, MADV_DONTNEED) == 0);
  CHECK(named(rig, memory.at(0), page).page == (first.page + 4 + 7) / 8 * 8 + 9);
  // A region's begin with it, and those of accesses stand elsewhere in their commands.
  fid_mr* region = nullptr;
  REQUIRE(fi_mr_reg(rig.domain, memory.at(6 * page), page, FI_REMOTE_READ, 0, 7, 0, &region, nullptr) == 0);
  REQUIRE(fi_mr_bind(region, &rig.endpoint->fid, 0) == 0);
  REQUIRE(fi_mr_enable(region) == 0);
  CHECK(wire::BufferPages::of(rig.run.pushed.back().command.pages).page == first.page + 2);
  REQUIRE(fi_close(&region->fid) == 0);
  REQUIRE(fi_read(rig.endpoint, memory.at(4 * page), 8, nullptr, 2, 0, 7, nullptr) == 0);
  CHECK(wire::BufferPages::of(rig.run.pushed.back().command.access_pages).page == first.page);
}

TEST_CASE("names say how long a page is, whether the NIC keeps where it is, and who translates") {
  constexpr std::size_t huge = 2 << 20;
  const Pages ordinary(2);
  {
    const Machine machine(Settings{{"FI_CXI_IOTLB", "0"}}, naming());
    const Rig rig;
    CHECK_FALSE(named(rig, ordinary.at(0), 8).kept);
    void* memory = mmap(nullptr, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    const wire::BufferPages pages = named(rig, memory, 2 * huge);
    CHECK(pages.shift == 21);
    CHECK(pages.page % (huge / page) == 0);
    REQUIRE(munmap(memory, 2 * huge) == 0);
  }
  {
    const Machine machine(Settings{{"FI_CXI_FORCE_ODP", "1"}, {"FI_CXI_ATS", "1"}}, naming());
    const Rig rig;
    const wire::BufferPages pages = named(rig, ordinary.at(0), page);
    CHECK(pages.by_processor);
    CHECK(named(rig, ordinary.at(page), page).page == pages.page + 1);
    CHECK(named(rig, ordinary.at(0), page).page == pages.page);
    CHECK(counts().mapped == 0);
  }
  const Machine machine;
  const Rig rig;
  CHECK(named(rig, ordinary.at(0), 8).shift == 0);  // nobody asks
}
