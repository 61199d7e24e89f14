#include "provider/attachments.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

using namespace dryfly;
using provider::Attachments;
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
  Attachments attachments{};
  attachments.open(costs, not_asked);
  CHECK_FALSE(attachments.are_in_use(100'000));
  attachments.open(without, asked);
  CHECK_FALSE(attachments.are_in_use(100'000));
  attachments.open(costs, asked);
  CHECK_FALSE(attachments.are_in_use(4096));
  CHECK(attachments.are_in_use(4097));
  attachments.close();
}

TEST_CASE("each target attaches a range once, and what lies within it not again") {
  const RegistrationSettings settings = with_xpmem(true);
  void* memory = mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* bytes = static_cast<char*>(memory);
  Attachments attachments{};
  attachments.open(costs, settings);
  CHECK(attachments.attach(3, bytes, 4 * page) == 1'004'000);
  CHECK(attachments.attach(3, bytes, 4 * page) == 0);
  CHECK(attachments.attach(3, bytes + 2 * page, 2 * page) == 0);
  CHECK(attachments.attach(5, bytes, 2 * page) == 1'002'000);
  CHECK(attachments.attach(3, bytes, 2 * page) == 0);
  CHECK(attachments.attach(5, bytes + 6 * page, 2 * page) == 1'002'000);
  attachments.close();
  munmap(memory, 8 * page);
}
