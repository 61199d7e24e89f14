#include "core/memory/written.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>

namespace dryfly {
namespace {

using Memory = WrittenMemory<std::uint32_t>;

TEST_CASE("what lies in shared memory is its last writer's") {
  auto memory = std::make_unique<Memory>();
  CHECK(memory->writer({7, 8192}, 100) == nullptr);
  memory->write({7, 8192}, 100, 1);
  memory->write({7, 8192}, 10'000, 2);
  CHECK(*memory->writer({7, 8192}, 100) == 2);
  CHECK(memory->writer({8, 8192}, 100) == nullptr);
  // From a line within on it is known by the next page, if what is copied reaches to there.
  CHECK(memory->writer({7, 9000}, 100) == nullptr);
  CHECK(*memory->writer({7, 9000}, 4000) == 2);
}

TEST_CASE("what lies beside it in a page has its own writer") {
  auto memory = std::make_unique<Memory>();
  memory->write({7, 4096}, 1000, 1);
  memory->write({7, 5120}, 1000, 2);
  CHECK(*memory->writer({7, 4096}, 1000) == 1);
  CHECK(*memory->writer({7, 5120}, 1000) == 2);
  memory->write({7, 4096}, 1000, 3);
  CHECK(*memory->writer({7, 5120}, 1000) == 2);
}

TEST_CASE("as many lines are known as there is room for, and those that are known stay so") {
  auto memory = std::make_unique<Memory>();
  std::uint64_t known = 0;
  for (std::uint64_t line = 0; line < Memory::capacity; ++line) memory->write({1, line * 4096}, 1, 5);
  for (std::uint64_t line = 0; line < Memory::capacity; ++line) {
    if (memory->writer({1, line * 4096}, 1) != nullptr) ++known;
  }
  CHECK(known == Memory::capacity / 4 * 3);
  memory->write({1, 0}, 1, 6);
  CHECK(*memory->writer({1, 0}, 1) == 6);
}

}  // namespace
}  // namespace dryfly
