#include "conductor/copy_orders.hpp"

#include <doctest/doctest.h>

namespace dryfly {

TEST_CASE("a rank's count says which copies are made, whichever the conductor has taken over") {
  CopyOrders orders;
  for (std::uint64_t number = 1; number <= 6; ++number) CHECK(orders.add() == number);
  CHECK(orders.count_of_all() == 6);
  CHECK_FALSE(orders.is_made(3, 2));
  CHECK(orders.is_made(3, 3));

  orders.take_over(4);
  orders.take_over(2);
  CHECK(orders.count_of_all() == 4);
  CHECK(orders.is_made(2, 0));
  CHECK(orders.is_made(4, 0));
  // The rank makes 1, 3, 5 and 6.
  CHECK_FALSE(orders.is_made(1, 0));
  CHECK(orders.is_made(1, 1));
  CHECK_FALSE(orders.is_made(3, 1));
  CHECK(orders.is_made(3, 2));
  CHECK_FALSE(orders.is_made(5, 2));
  CHECK(orders.is_made(5, 3));
  CHECK(orders.count_at(6) == 4);
}

}  // namespace dryfly
