#include "conductor/copy_orders.hpp"

#include <doctest/doctest.h>

namespace dryfly {

TEST_CASE("a rank's count says which copies are made, whichever the conductor has taken over") {
  CopyOrders orders;
  for (std::uint64_t number = 1; number <= 6; ++number) {
    CHECK(orders.add() == number);
    orders.show(number, 0);
  }
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

// What a NIC says is kept for as long as memory may say something that is to be seen earlier.
TEST_CASE("an order that comes to the rank behind a later one is made behind it") {
  CopyOrders orders;
  for (std::uint64_t number = 1; number <= 3; ++number) orders.add();
  orders.show(1, 0);
  orders.show(3, 1);
  CHECK_FALSE(orders.is_made(3, 1));
  CHECK(orders.is_made(3, 2));
  CHECK_FALSE(orders.is_made(2, 2));
  CHECK(orders.count_at(3) == 2);
  CHECK(orders.count_at(2) == 3);
  orders.show(2, 2);
  CHECK_FALSE(orders.is_made(2, 2));
  CHECK(orders.is_made(2, 3));
  CHECK(orders.is_made(3, 3));
  orders.add();
  orders.show(4, 3);
  CHECK(orders.is_made(2, 3));
  CHECK(orders.is_made(3, 3));
  CHECK_FALSE(orders.is_made(4, 3));
}

TEST_CASE("nobody waits for an order to a process that has ended") {
  CopyOrders orders;
  for (std::uint64_t number = 1; number <= 2; ++number) orders.add();
  orders.show(2, 0);
  orders.drop(1, 1);
  CHECK(orders.is_made(1, 1));
  CHECK(orders.is_made(2, 1));
  CHECK(orders.count_of_all() == 1);
}

}  // namespace dryfly
