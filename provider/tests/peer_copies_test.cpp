#include "provider/peer_copies.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <array>

using namespace dryfly;
using provider::PeerCopies;
using provider::RegistrationSettings;

namespace {

constexpr std::size_t page = 4096;
constexpr wire::RegistrationCosts costs{.map_ps = 1'000'000, .map_page_ps = 1'000, .page_bytes = page};

RegistrationSettings with_xpmem(bool asked) {
  RegistrationSettings settings{};
  settings.attaches = asked;
  settings.ranges_max = 64;
  settings.bytes_max = std::uint64_t{1} << 30;
  return settings;
}

}  // namespace

TEST_CASE("memory is attached where XPMEM is asked for and there, and only for what does not fit into a segment") {
  const RegistrationSettings asked = with_xpmem(true);
  const RegistrationSettings not_asked = with_xpmem(false);
  const wire::RegistrationCosts without{};
  PeerCopies copies{};
  copies.open(costs, not_asked);
  CHECK_FALSE(copies.are_attached());
  copies.open(without, asked);
  CHECK_FALSE(copies.are_attached());
  copies.open(costs, asked);
  CHECK(copies.are_attached());
  CHECK_FALSE(PeerCopies::go_by_memory(4096));
  CHECK(PeerCopies::go_by_memory(4097));
  copies.close();
}

TEST_CASE("each target attaches a range once, and what lies within it not again") {
  const RegistrationSettings settings = with_xpmem(true);
  void* memory = mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* bytes = static_cast<char*>(memory);
  PeerCopies copies{};
  copies.open(costs, settings);
  CHECK(copies.attach(3, bytes, 4 * page) == 1'004'000);
  CHECK(copies.attach(3, bytes, 4 * page) == 0);
  CHECK(copies.attach(3, bytes + 2 * page, 2 * page) == 0);
  CHECK(copies.attach(5, bytes, 2 * page) == 1'002'000);
  CHECK(copies.attach(3, bytes, 2 * page) == 0);
  CHECK(copies.attach(5, bytes + 6 * page, 2 * page) == 1'002'000);
  copies.close();
  munmap(memory, 8 * page);
}

TEST_CASE("each target keeps what it has copied until the source writes there or others need the room") {
  const RegistrationSettings settings = with_xpmem(false);
  PeerCopies copies{};
  copies.open(costs, settings);
  std::array<char, 3 * page> bytes{};
  CHECK_FALSE(copies.copy(3, bytes.data(), page, 0, 2 * page).has_value());
  CHECK(copies.copy(3, bytes.data(), page, 0, 2 * page) == page);
  CHECK_FALSE(copies.copy(5, bytes.data(), page, 0, 2 * page).has_value());
  CHECK_FALSE(copies.copy(3, bytes.data(), page, 1, 2 * page).has_value());  // the same was received there meanwhile
  bytes[100] = 1;
  CHECK_FALSE(copies.copy(3, bytes.data(), page, 0, 2 * page).has_value());
  CHECK_FALSE(copies.copy(3, bytes.data() + page, 2 * page, 0, 2 * page).has_value());
  CHECK_FALSE(copies.copy(3, bytes.data(), page, 0, 2 * page).has_value());
  CHECK_FALSE(copies.copy(3, bytes.data(), 3 * page, 0, 2 * page).has_value());
  CHECK_FALSE(copies.copy(3, bytes.data(), 3 * page, 0, 2 * page).has_value());
  copies.close();
}
