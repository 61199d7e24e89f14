// Figures: see test_stand.hpp; the processor does its work 50 ns after the last event before it.
#include <string>
#include <vector>

#include "core/nic/parcel.hpp"
#include "testing/work_stand.hpp"

using namespace dryfly;
using namespace dryfly::nic;

namespace {

constexpr std::uint32_t plenty = 1000;

// When transfers of this step were handed to the network, in ns, and the class of the latest.
struct Seen {
  std::vector<std::uint64_t> at;
  TrafficClass traffic_class = TrafficClass::ethernet;
};

Seen transfers(const Working& run, Step step) {
  Seen seen;
  for (const FakeNetwork::Submission& each : run.stand.network.submitted) {
    if (Parcel::of_handle(each.transfer.handle).step != step) continue;
    seen.at.push_back(each.at.ps / ns);
    seen.traffic_class = each.transfer.traffic_class;
  }
  return seen;
}

SendCommand bulk(SendCommand command) {
  command.traffic_class = TrafficClass::bulk_data;
  return command;
}

NicSpec without_gets_by_nic() {
  NicSpec spec = TestStand::round_figures();
  spec.gets_by_nic = false;
  return spec;
}

}  // namespace

TEST_CASE("the Gets of software travel in their own class, those of a NIC in the message's") {
  for (const MatchMode matching : {MatchMode::software, MatchMode::hardware}) {
    Working run(plenty);
    EndpointSettings settings = mode(matching);
    settings.software_class = TrafficClass::low_latency;
    run.reopen(2, settings);
    run.stand.nics.receive(receive_of(2, 10));
    run.stand.nics.send(bulk(message(0, 2, 100'000, 1)));
    run.run();
    const bool software = matching == MatchMode::software;
    const TrafficClass expected = software ? TrafficClass::low_latency : TrafficClass::bulk_data;
    CHECK(transfers(run, Step::message).traffic_class == TrafficClass::bulk_data);
    CHECK(transfers(run, Step::get_request).traffic_class == expected);
    CHECK(transfers(run, Step::get_data).traffic_class == expected);
    CHECK(run.received_sends() == std::vector<std::uint64_t>{1});
  }
}

TEST_CASE("software has no more Gets under way than it may, and issues the next when one is complete") {
  for (const std::uint32_t most : {1U, 2U}) {
    Working run(plenty);
    EndpointSettings settings = mode(MatchMode::software);
    settings.software_gets = most;
    run.reopen(2, settings);
    for (std::uint64_t i = 0; i < 3; ++i) run.stand.nics.receive(receive_of(2, 10 + i));
    for (std::uint64_t i = 0; i < 3; ++i) run.stand.nics.send(message(0, 2, 100'000, i));
    run.run();
    const std::vector<std::uint64_t> asked = transfers(run, Step::get_request).at;
    REQUIRE(asked.size() == 3);
    CHECK((asked[1] - asked[0] > 1000) == (most == 1));
    CHECK(asked[2] - asked[0] > 1000);
    CHECK(run.received_sends() == std::vector<std::uint64_t>{0, 1, 2});
    CHECK(run.stand.nics.at_rest());
  }
}

TEST_CASE("an end-point that closes with Gets that wait for others leaves nothing behind") {
  Working run(plenty);
  EndpointSettings settings = mode(MatchMode::software);
  settings.software_gets = 1;
  run.reopen(2, settings);
  for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.receive(receive_of(2, 10 + i));
  for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.send(message(0, 2, 100'000, i));
  run.stand.run();
  const auto work = std::exchange(run.stand.all_work, {});
  for (const auto& [at, item] : work) run.stand.nics.worked(at, item);
  run.stand.nics.close_endpoint(EndpointId{2});
  run.run();
  CHECK(run.received_sends().empty());
  CHECK(run.stand.nics.at_rest());
}

TEST_CASE("where NICs are set not to, the processor issues the Get of what the NIC has matched") {
  // Request 100 + 300 at the source, there at 1,400, matched at 1,600; the last event is the end of its acknowledgement
  // at 400 + 1,700 + 200, so the Get is issued at 2,350, leaves at 2,450 and is at the source at 3,450; the data leaves
  // at 3,750 and is in memory at 4,950. The NIC says at once that it is done.
  for (const bool expected : {true, false}) {
    Working run(without_gets_by_nic());
    if (expected) run.stand.nics.receive(receive_of(2, 10));
    run.stand.nics.send(message(0, 2, 100'000, 1));
    if (!expected) run.stand.at(2300 * ns, [&] { run.stand.nics.receive(receive_of(2, 10)); });
    run.run();
    CHECK(run.stand.log == TestStand::Log{"4950 received 1 in 10 at 2", "5950 sent 1 from 0"});
  }
}

TEST_CASE("after a restricted Get the processor says so, and the receive is complete with the acknowledgement") {
  // As above until 4,950; the last event is the acknowledgement of the data at 3,750 + 1,700, the word leaves 50 + 100
  // later, and its acknowledgement is there 1,700 after that.
  Working run(without_gets_by_nic());
  EndpointSettings settings;
  settings.notifies_done = true;
  run.reopen(0, settings);
  run.stand.nics.receive(receive_of(2, 10));
  run.stand.nics.send(message(0, 2, 100'000, 1));
  run.run();
  CHECK(run.done == std::vector<WorkKind>{WorkKind::software_get, WorkKind::tell_done});
  CHECK(run.stand.log == TestStand::Log{"7300 received 1 in 10 at 2", "7300 sent 1 from 0"});
  CHECK(run.stand.nics.at_rest());
}

TEST_CASE("a NIC's own Get is never a restricted one") {
  Working run(plenty);
  EndpointSettings settings;
  settings.notifies_done = true;
  run.reopen(0, settings);
  run.stand.nics.receive(receive_of(2, 10));
  run.stand.nics.send(message(0, 2, 100'000, 1));
  run.run();
  CHECK(run.done.empty());
  CHECK(run.received_sends() == std::vector<std::uint64_t>{1});
}

TEST_CASE("a NIC that is not written to fetches the command, and then the payload") {
  for (const bool writes : {true, false}) {
    Working run(plenty);
    EndpointSettings settings;
    settings.writes_commands = writes;
    run.reopen(0, settings);
    run.stand.nics.send(message(0, 2, 8, 1));     // written with its payload: nothing to fetch
    run.stand.nics.send(message(0, 3, 150, 2));   // a long command: one fetch either way
    run.stand.nics.send(message(0, 3, 1000, 3));  // command, and then payload
    run.stand.run();
    const std::vector<std::uint64_t> at = transfers(run, Step::message).at;
    // The commands are 10 ns apart.
    CHECK(at == (writes ? std::vector<std::uint64_t>{100, 410, 420} : std::vector<std::uint64_t>{400, 410, 720}));
  }
}

TEST_CASE("what goes to another virtual network comes back as an error") {
  Working run(plenty);
  EndpointSettings settings;
  settings.network = 11;
  run.reopen(2, settings);
  run.reopen(1, settings);
  run.stand.nics.receive(receive_of(1, 10));
  run.stand.nics.receive(receive_of(2, 11));
  run.stand.nics.send(message(0, 1, 8, 1));
  run.stand.at(1000 * ns, [&] { run.stand.nics.send(message(0, 2, 8, 2)); });
  run.stand.at(9000 * ns, [&] {
    run.stand.nics.rma(
        {.kind = RmaKind::write, .source = EndpointId{0}, .target = EndpointId{2}, .size = Bytes{8}, .token = 3});
  });
  run.stand.at(19'000 * ns, [&] { run.stand.nics.send(message(1, 2, 8, 4)); });
  run.run();
  // Egress 100, flight 1,000, ingress 200, acknowledgement 700 after the flight.
  CHECK(run.stand.log == TestStand::Log{"2000 dropped 1", "2000 send_failed 1 from 0 error 107", "3000 dropped 2",
                                        "3000 send_failed 2 from 0 error 107", "11000 rma_done 3 from 0 error 107",
                                        "20300 received 4 in 11 at 2", "21000 sent 4 from 1"});
  CHECK(run.stand.nics.at_rest());
}

TEST_CASE("a provider that has no room for what it is told hears it again") {
  for (const std::uint32_t slots : {1U, 2U}) {
    Working run(4);  // one besides the overflow buffers
    EndpointSettings settings;
    settings.control_slots = slots;
    run.reopen(2, settings);
    run.stand.nics.send(message(0, 2, 8, 1));
    run.stand.nics.send(message(0, 2, 8, 2));
    run.stand.nics.send(message(1, 2, 8, 3));
    run.run();
    CHECK(run.totals().messages_refused >= 2);
    CHECK(run.totals().notices_repeated == (slots == 1 ? 1 : 0));
    for (std::uint64_t i = 0; i < 3; ++i) run.stand.nics.receive(receive_of(2, 100 + i));
    run.run();
    CHECK(run.received_sends().size() == 3);
    CHECK(run.totals().messages_replayed == run.totals().messages_refused);
    CHECK(run.stand.nics.at_rest());
  }
}

TEST_CASE("a hybrid portal may turn to software with an overflow buffer that finds the engine half full") {
  for (const bool preempts : {true, false}) {
    Working run(13);  // three overflow, two request buffers, two receives, and the header: eight
    EndpointSettings settings = mode(MatchMode::hybrid);
    settings.preempt_on_overflow = preempts;
    settings.overflow_buffer = Bytes{20'000};  // the first message leaves no room for a long one
    settings.request_buffers = 2;
    run.reopen(2, settings);
    for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.receive(receive_of(2, 10 + i, 99));
    run.stand.nics.send(message(0, 2, 2000, 1));
    run.run();
    CHECK(run.totals().software_by_choice == (preempts ? 1 : 0));
  }
}
