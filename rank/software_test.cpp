#include "rank/software.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace dryfly::rank;
namespace wire = dryfly::wire;

namespace {

void set(SoftwareRow& row, Boundary from, Boundary to, SoftwareCost cost) {
  row.costs[static_cast<int>(from)][static_cast<int>(to)] = cost;
}

}  // namespace

TEST_CASE("an interval costs what its kind does, and a blocking call's empty polls nothing") {
  SoftwareRow row{};
  set(row, Boundary::call, Boundary::receive, {100, 0});
  set(row, Boundary::receive, Boundary::poll, {20, 0});
  set(row, Boundary::poll, Boundary::poll, {7, 0});
  set(row, Boundary::arrived, Boundary::call, {300, 1024});
  Software software{};
  software.row = &row;
  software.leave(Boundary::call, 0);

  constexpr bool waits = true;
  CHECK(software.reach(Boundary::receive, 0, waits) == 100);
  software.leave(Boundary::receive, 0);
  CHECK(software.reach(Boundary::poll, 0, waits) == 20);
  software.leave(Boundary::poll, 0);
  CHECK(software.reach(Boundary::poll, 0, waits) == 0);
  CHECK(software.reach(Boundary::poll, 0, !waits) == 7);
  software.leave(Boundary::arrived, 512);
  CHECK(software.reach(Boundary::call, 0, waits) == 300 + 512);
  CHECK(software.charged_ps == 100 + 20 + 7 + 812);
  CHECK(software.assumed_ps == 0);
}

TEST_CASE("outside an MPI call, and without a table, nothing costs anything") {
  Software software{};
  CHECK(software.reach(Boundary::poll, 0, true) == 0);
  CHECK(software.charged_ps == 0);
}

TEST_CASE("the message is the longer one of those at the two boundaries, and what was not counted is told apart") {
  SoftwareRow row{};
  set(row, Boundary::arrived, Boundary::send_eager, {cost_is_assumed | 50, 2048});
  Software software{};
  software.row = &row;
  software.leave(Boundary::arrived, 1024);
  CHECK(software.reach(Boundary::send_eager, 4096, true) == 50 + 4 * 2048);
  CHECK(software.assumed_ps == software.charged_ps);
}

TEST_CASE("a reduction's data take what its operation takes on its type, and a function of the program's is its own") {
  SoftwareRow row{};
  set(row, Boundary::arrived, Boundary::call, {100, 1024});
  set(row, Boundary::arrived, Boundary::poll, {100, 0});
  Software software{};
  software.row = &row;
  const auto arrive = [&software](Boundary to) {
    software.leave(Boundary::arrived, 2048);
    return software.reach(to, 0, true);
  };
  CHECK(arrive(Boundary::call) == 100 + 2 * 1024);
  software.reduction_scale = 3 * reduction_unit;
  CHECK(arrive(Boundary::call) == 100 + 3 * 2 * 1024);
  CHECK(arrive(Boundary::poll) == 100);  // nothing is gone through there
  software.reduction_scale = programs_reduction;
  CHECK(arrive(Boundary::call) == 100);
}

TEST_CASE("blocks are packed before they are sent, and unpacked once their message is found") {
  auto page = std::make_unique<wire::RankPage>();
  auto account = std::make_unique<SoftwareAccount>();
  account->page = page.get();
  SoftwareRow row{};
  set(row, Boundary::call, Boundary::send_eager, {100, 0});
  set(row, Boundary::arrived, Boundary::call, {50, 0});
  Software software{};
  software.row = &row;
  software.account = account.get();
  software.pack = {1000, 10, 2048};
  software.unpack = {500, 20, 0};
  software.block = 8;
  software.leave(Boundary::call, 0);
  // 1,024 B are 128 blocks of 8 B.
  CHECK(software.reach(Boundary::send_eager, 1024, true) == 100 + 1000 + 128 * 10 + 2048);
  software.leave(Boundary::send_eager, 1024);
  CHECK(software.reach(Boundary::call, 0, true) == 0);

  software.block = 0;  // another call, which finds the message for a receive of blocks of 16 B
  software.leave(Boundary::arrived, 1000);
  software.found_block = 16;
  CHECK(software.reach(Boundary::call, 0, true) == 50 + 500 + 63 * 20);
  software.leave(Boundary::arrived, 1000);
  CHECK(software.reach(Boundary::call, 0, true) == 50);
  CHECK(software.charged_ps == 100 + 4328 + 50 + 1760 + 50);

  CHECK(page->software.kinds == 4);
  const wire::SoftwareSpent& spent = page->software.spent[2];
  CHECK(spent.from == copied);
  CHECK(spent.to == packed);
  CHECK(spent.bytes == 1024 + 1000);
  CHECK(spent.ps == 4328 + 1760);
}

TEST_CASE("a look at a GPU's memory is the library's own time, beside the interval that is under way") {
  auto page = std::make_unique<wire::RankPage>();
  auto account = std::make_unique<SoftwareAccount>();
  account->page = page.get();
  SoftwareRow row{};
  set(row, Boundary::call, Boundary::send_eager, {100, 0});
  Software software{};
  software.row = &row;
  software.account = account.get();
  software.leave(Boundary::call, 0);
  CHECK(software.look(4096, 150) == 150);
  CHECK(software.reach(Boundary::send_eager, 4096, true) == 100);
  CHECK(software.charged_ps == 250);
  CHECK(page->software.kinds == 2);
  const wire::SoftwareSpent& spent = page->software.spent[1];
  CHECK(spent.from == copied);
  CHECK(spent.to == looked);
  CHECK(spent.count == 1);
  CHECK(spent.bytes == 4096);
  CHECK(spent.ps == 150);
}

TEST_CASE("what an interval costs is accounted for by its call and kind, and kinds without room go to the first") {
  auto page = std::make_unique<wire::RankPage>();
  auto account = std::make_unique<SoftwareAccount>();
  account->call = 3;
  account->page = page.get();
  SoftwareRow row{};
  set(row, Boundary::call, Boundary::inject, {100, 2048});
  Software software{};
  software.row = &row;
  software.account = account.get();
  for (int i = 0; i < 2; ++i) {
    software.leave(Boundary::call, 0);
    CHECK(software.reach(Boundary::inject, 512, true) == 100 + 1024);
  }
  software.leave(Boundary::poll, 0);
  software.reach(Boundary::poll, 0, true);  // an empty poll of a blocking call

  CHECK(page->software.kinds == 1);
  const wire::SoftwareSpent& spent = page->software.spent[1];
  CHECK(spent.call == 3);
  CHECK(spent.from == static_cast<int>(Boundary::call));
  CHECK(spent.to == static_cast<int>(Boundary::inject));
  CHECK(spent.count == 2);
  CHECK(spent.bytes == 2 * 512);
  CHECK(spent.ps == 2 * 1124);

  page->software.kinds = wire::software_spent_count - 1;
  account->add(copied, copied, 4096, 7);
  CHECK(page->software.spent[0].ps == 7);
  CHECK(spent.count == 2);
}
