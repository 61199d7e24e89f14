#include "core/memory/written.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>

namespace dryfly {
namespace {

using Pages = WrittenPages<std::uint32_t>;

TEST_CASE("a page is its last writer's, until somebody has read it") {
  auto pages = std::make_unique<Pages>();
  const std::uint64_t name = Pages::name_of(7, 8192);
  CHECK(pages->find(name) == nullptr);
  pages->read(name, 3);  // nobody has written it
  CHECK(pages->find(name) == nullptr);
  pages->written(name, 1);
  pages->written(name, 2);
  CHECK(pages->find(name)->writer == 2);
  CHECK(pages->find(name)->reader == 0);
  pages->read(name, 3);
  CHECK(pages->find(name)->writer == 2);
  CHECK(pages->find(name)->reader == 3);
  pages->written(name, 4);
  CHECK(pages->find(name)->reader == 0);
}

TEST_CASE("pages are those of a file, and as many as there is room for") {
  CHECK(Pages::name_of(7, 0) == Pages::name_of(7, 4095));
  CHECK(Pages::name_of(7, 0) != Pages::name_of(7, 4096));
  CHECK(Pages::name_of(7, 0) != Pages::name_of(8, 0));
  auto pages = std::make_unique<Pages>();
  std::uint64_t known = 0;
  for (std::uint64_t page = 0; page < Pages::capacity; ++page) pages->written(Pages::name_of(1, page * 4096), 5);
  for (std::uint64_t page = 0; page < Pages::capacity; ++page) {
    if (pages->find(Pages::name_of(1, page * 4096)) != nullptr) ++known;
  }
  CHECK(known == Pages::capacity / 4 * 3);
  pages->written(Pages::name_of(1, 0), 6);  // those that are there are there for good
  CHECK(pages->find(Pages::name_of(1, 0))->writer == 6);
}

}  // namespace
}  // namespace dryfly
