// When a send is complete at its source, by what it asks for; test_stand.hpp has the figures.
#include <doctest/doctest.h>

#include "testing/test_stand.hpp"

namespace dryfly::nic {
namespace {

using Log = TestStand::Log;

SendCommand complete_when(Completeness when, SendCommand command) {
  command.complete_when = when;
  return command;
}

TEST_CASE("delivery completion waits for the way to the other socket where the acknowledgement is quicker") {
  NicSpec spec = TestStand::round_figures();
  spec.socket_latency = {90 * ns};
  TestStand stand(spec);
  stand.network.acknowledgement_time = {50 * ns};
  stand.nics.open_endpoint(EndpointId{4}, NicId{3}, NodeId{2}, {}, {.socket = 0, .nic_socket = 1});
  stand.nics.receive(receive_of(4, 20));
  stand.nics.send(complete_when(Completeness::transmitted, message(0, 4, 8, 10)));
  stand.run();
  CHECK(stand.log == Log{"1350 sent 10 from 0", "1390 received 10 in 20 at 4"});
  stand.log.clear();
  stand.nics.receive(receive_of(4, 21));
  stand.nics.send(complete_when(Completeness::delivered, message(0, 4, 8, 11)));
  stand.run();
  // Both at 1,390 + 1,390.
  CHECK(stand.log == Log{"2780 sent 11 from 0", "2780 received 11 in 21 at 4"});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("match completion of an expected message is its acknowledgement") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20));
  stand.nics.send(complete_when(Completeness::matched, message(0, 2, 8, 10)));
  stand.run();
  CHECK(stand.log == Log{"1300 received 10 in 20 at 2", "2000 sent 10 from 0"});
  CHECK(stand.all_work.empty());
}

TEST_CASE("match completion of an unexpected message is a notice of the target's CPU after its receive") {
  TestStand stand;
  stand.nics.send(complete_when(Completeness::matched, message(0, 2, 8, 10)));
  stand.run();
  CHECK(stand.log.empty());
  stand.at(5000 * ns, [&] { stand.nics.receive(receive_of(2, 20)); });
  stand.run();
  CHECK(stand.log == Log{"5200 received 10 in 20 at 2"});
  REQUIRE(stand.all_work.size() == 1);
  CHECK(stand.all_work[0].second.kind == WorkKind::tell_match);
  CHECK_FALSE(stand.nics.at_rest());
  stand.at(6000 * ns, [&] { stand.nics.worked(EndpointId{2}, stand.all_work[0].second); });
  stand.run();
  // A command: 100 to the wire, 1,000 back.
  CHECK(stand.log.back() == "7100 sent 10 from 0");
  CHECK(stand.log.size() == 2);
  CHECK(stand.nics.at_rest());
}

TEST_CASE("a message that a peek discards has met its match") {
  TestStand stand;
  stand.nics.send(complete_when(Completeness::matched, message(0, 2, 8, 10)));
  stand.run();
  stand.nics.peek({.at = EndpointId{2}, .tagged = true, .token = 30, .discard = true});
  REQUIRE(stand.all_work.size() == 1);
  stand.nics.worked(EndpointId{2}, stand.all_work[0].second);
  stand.run();
  CHECK(stand.log.back().find("sent 10 from 0") != std::string::npos);
  CHECK(stand.nics.at_rest());
}

TEST_CASE("by memory match completion is the receive, and a rendezvous is matched by its nature") {
  TestStand stand;
  stand.open_in_memory();
  stand.nics.send(complete_when(Completeness::matched, message(14, 15, 8, 10)));
  stand.nics.send(complete_when(Completeness::matched, message(0, 2, 100'000, 11, 1)));
  stand.run();
  CHECK(stand.log.empty());
  stand.nics.receive(receive_of(15, 20));
  stand.nics.receive(receive_of(2, 21, 1));
  stand.run();
  CHECK(stand.all_work.empty());
  CHECK(stand.log.size() == 4);
  CHECK(stand.log[1].find("sent 10 from 14") != std::string::npos);
  CHECK(stand.log[3].find("sent 11 from 0") != std::string::npos);
}

}  // namespace
}  // namespace dryfly::nic
