#include "core/unit/key_table.hpp"

#include <doctest/doctest.h>

#include <map>

namespace dryfly {
namespace {

TEST_CASE("a table of keys does what the standard library's map does") {
  struct Value {
    std::uint64_t number = 0;
  };
  for (const std::uint32_t keys : {3U, 40U, 5'000U}) {
    KeyTable<Value> table;
    std::map<std::uint64_t, std::uint64_t> reference;
    const RandomStream random{1, keys, Purpose::test};
    for (std::uint64_t step = 0; step < 60'000; ++step) {
      const std::uint64_t key = random.below(3 * step, keys);
      const Value* found = table.find(key);
      const auto expected = reference.find(key);
      REQUIRE((found != nullptr) == (expected != reference.end()));
      if (found != nullptr) REQUIRE(found->number == expected->second);
      if (random.below(3 * step + 1, 2) == 0) {
        table[key].number = reference[key] = step;
      } else if (found != nullptr) {
        table.erase(*found);
        reference.erase(key);
      }
      REQUIRE(table.size() == reference.size());
    }
    table.clear();
    CHECK(table.empty());
    for (const auto& [key, number] : reference) CHECK(table.find(key) == nullptr);
    CHECK(table[7].number == 0);
  }
}

}  // namespace
}  // namespace dryfly
