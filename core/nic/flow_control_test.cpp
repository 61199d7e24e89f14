// Figures: see test_stand.hpp. A control message between two nodes takes 100 (egress) + 1,000 + 200 (ingress) ns; the
// processor of these tests does its work 50 ns after it is asked.
#include <map>
#include <vector>

#include "testing/work_stand.hpp"

using namespace dryfly;
using namespace dryfly::nic;

TEST_CASE("messages that find no list entry are dropped, and sent again in order when the headers are onloaded") {
  Working run(5);  // two besides the overflow buffers
  for (std::uint64_t i = 0; i < 6; ++i) {
    run.stand.at(0, [&run, i] { run.stand.nics.send(message(0, 2, 8, i)); });
  }
  run.run();
  CHECK(run.totals().unexpected_failed >= 1);
  CHECK(run.totals().messages_refused >= 4);
  CHECK(run.totals().messages_refused == run.totals().messages_replayed);
  for (std::uint64_t i = 0; i < 6; ++i) run.stand.nics.receive(receive_of(2, 100 + i));
  run.run();
  CHECK(run.received_sends() == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5});
  CHECK(run.stand.nics.at_rest());
  // Each send is complete once.
  std::map<std::string, int> lines;
  for (const std::string& line : run.stand.log) {
    if (line.find(" sent ") != std::string::npos) ++lines[line.substr(line.find(' '))];
  }
  CHECK(lines.size() == 6);
  for (const auto& [line, count] : lines) CHECK_MESSAGE(count == 1, line);
}

TEST_CASE("the steps of flow control, one after the other") {
  Working run(4);  // one besides the overflow buffers
  run.stand.at(0, [&] { run.stand.nics.send(message(0, 2, 8, 1)); });
  run.stand.at(0, [&] { run.stand.nics.send(message(0, 2, 8, 2)); });
  run.run();
  CHECK(run.done == std::vector<WorkKind>{WorkKind::onload, WorkKind::hold, WorkKind::count_drops, WorkKind::replay});
  CHECK(run.totals().headers_onloaded == 1);
  CHECK(run.totals().messages_refused == 1);
  CHECK(run.totals().overflow_list_max == 1);
  CHECK(run.totals().engine_entries_max == 4);
}

TEST_CASE("sources that did not drop anything are not held up by those that did") {
  Working run(4);
  run.stand.at(0, [&] { run.stand.nics.send(message(0, 2, 8, 1)); });
  run.stand.at(0, [&] { run.stand.nics.send(message(1, 2, 8, 2)); });
  run.stand.at(0, [&] { run.stand.nics.send(message(0, 3, 8, 3)); });
  run.run();
  CHECK(run.totals().messages_refused == 1);
  run.stand.nics.receive(receive_of(3, 100));
  run.stand.nics.receive(receive_of(2, 101));
  run.stand.nics.receive(receive_of(2, 102));
  run.run();
  // The first was onloaded and needs nothing of the NIC any more.
  CHECK(run.received_sends() == std::vector<std::uint64_t>{1, 3, 2});
}

TEST_CASE("in hardware mode the job ends at exactly the receive that is one too many") {
  for (const std::uint32_t receives : {97U, 98U}) {
    Working run(100);  // three are overflow buffers
    for (std::uint32_t i = 0; i < receives; ++i) run.stand.nics.receive(receive_of(2, i, i));
    run.run();
    const bool fatal = !run.done.empty() && run.done.back() == WorkKind::fatal_entries;
    CHECK(fatal == (receives == 98));
    CHECK(run.totals().priority_list_max == 97);
  }
}

TEST_CASE("a receive for which there was no entry is appended when an onload has freed one") {
  Working run(5);
  run.stand.nics.send(message(0, 2, 8, 1, 7));
  run.run();
  run.stand.nics.receive(receive_of(2, 10, 1));
  run.stand.nics.receive(receive_of(2, 11, 2));  // one too many, but the unexpected header can go
  run.run();
  CHECK(run.totals().append_failed == 1);
  CHECK(run.done == std::vector<WorkKind>{WorkKind::onload});
  run.stand.nics.send(message(0, 2, 8, 2, 2));
  run.stand.nics.receive(receive_of(2, 12, 7));
  run.run();
  CHECK(run.received_sends() == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("in hybrid mode the same messages arrive without a drop, matched by software") {
  Working run(11);
  run.reopen(2, mode(MatchMode::hybrid));  // nine entries for buffers
  for (std::uint64_t i = 0; i < 6; ++i) {
    run.stand.at(0, [&run, i] { run.stand.nics.send(message(0, 2, 8, i)); });
  }
  run.run();
  CHECK(run.totals().messages_refused == 0);
  CHECK(run.totals().software_by_unexpected == 1);
  CHECK(run.totals().headers_onloaded == 2);
  CHECK(run.totals().request_list_max == 4);
  for (std::uint64_t i = 0; i < 6; ++i) run.stand.nics.receive(receive_of(2, 100 + i));
  run.run();
  CHECK(run.received_sends() == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5});
  CHECK(!run.stand.all_received.front().matched_in_software);
  CHECK(run.stand.all_received.back().matched_in_software);
}

TEST_CASE("the Get of a rendezvous waits for the target's processor in software mode only") {
  for (const MatchMode mode_used : {MatchMode::hardware, MatchMode::software}) {
    Working run(100);
    run.reopen(2, mode(mode_used));
    run.stand.nics.receive(receive_of(2, 10));
    run.stand.nics.send(message(0, 2, 100'000, 1));
    constexpr std::uint64_t busy_until = 50'000 * ns;
    run.run(busy_until);
    CHECK(run.received_sends() == std::vector<std::uint64_t>{1});
    const bool late = run.stand.engine.now().ps > busy_until;
    CHECK(late == (mode_used == MatchMode::software));
  }
}

TEST_CASE("a rendezvous request that the processor has seen is answered as soon as its receive is posted") {
  Working run(100);
  run.reopen(2, mode(MatchMode::software));
  run.stand.nics.send(message(0, 2, 100'000, 1));
  run.run();
  CHECK(run.done == std::vector<WorkKind>{WorkKind::software_get});
  run.stand.nics.receive(receive_of(2, 10));
  run.run();
  CHECK(run.received_sends() == std::vector<std::uint64_t>{1});
  CHECK(run.done.size() == 1);
}

TEST_CASE("a full event queue refuses messages until the processor has come to its events") {
  Working run(1000);
  EndpointSettings settings;
  settings.event_slots = 40;
  run.reopen(2, settings);
  for (std::uint64_t i = 0; i < 60; ++i) {
    run.stand.at(0, [&run, i] { run.stand.nics.send(message(0, 2, 8, i)); });
  }
  run.run(20'000 * ns);
  CHECK(run.totals().events_full == 1);
  CHECK(run.totals().messages_refused == 20);
  for (std::uint64_t i = 0; i < 60; ++i) run.stand.nics.receive(receive_of(2, 100 + i));
  run.run();
  CHECK(run.stand.all_received.size() == 60);
}

TEST_CASE("a target that closes while it is disabled lets its sources go on") {
  Working run(4);
  for (std::uint64_t i = 0; i < 3; ++i) run.stand.nics.send(message(0, 2, 8, i));
  run.stand.run();
  run.stand.nics.close_endpoint(EndpointId{2});
  run.run();
  CHECK(run.stand.nics.at_rest());
}

TEST_CASE("end-points on one engine of a NIC share its entries, those on another do not") {
  Working run(10);
  run.reopen(3, {.engine = 0});
  run.stand.nics.open_endpoint(EndpointId{4}, NicId{2}, NodeId{1}, {.engine = 0});
  run.stand.nics.open_endpoint(EndpointId{5}, NicId{2}, NodeId{1}, {.engine = 1});
  // Six of ten are overflow buffers of 3 and 4.
  for (std::uint64_t i = 0; i < 4; ++i) run.stand.nics.receive(receive_of(3, i, i));
  for (std::uint64_t i = 0; i < 7; ++i) run.stand.nics.receive(receive_of(5, i, i));
  CHECK(run.stand.all_work.empty());
  run.stand.nics.receive(receive_of(4, 0));
  CHECK(run.stand.all_work.size() == 1);
}

TEST_CASE("messages by memory use no list entries and are never refused") {
  Working run(3);  // overflow buffers only
  run.stand.open_in_memory();
  run.stand.nics.send(message(14, 15, 8, 1));
  run.run();
  ReceiveCommand command = receive_of(15, 10);
  command.any_source = false;
  command.source = EndpointId{14};
  run.stand.nics.receive(command);
  run.run();
  CHECK(run.received_sends() == std::vector<std::uint64_t>{1});
  CHECK(run.done.empty());
}

TEST_CASE("a short message that may not be in its command is fetched from memory") {
  Working run(100);
  SendCommand command = message(0, 2, 8, 1);
  command.by_dma = true;
  run.stand.nics.receive(receive_of(2, 10));
  run.stand.nics.send(command);
  run.run();
  REQUIRE(run.stand.all_received.size() == 1);
  CHECK(run.stand.all_received.front().protocol == Protocol::eager);
  // 100 egress + 300 DMA read + 1,000 + 200 ingress.
  CHECK(run.stand.log.front() == "1600 received 1 in 10 at 2");
}

TEST_CASE("the time for which a lossless end-point has no buffer is counted in cycles of its class") {
  Working run(100);
  EndpointSettings settings;
  settings.overflow_buffers = 1;
  settings.overflow_buffer = Bytes{20'000};
  settings.lossless = true;
  run.reopen(2, settings);
  // The first takes the one buffer. The second comes 10 ns behind it, 1,410 ns after its command (100 egress, 300 DMA,
  // 1,000 flight), and is through the ingress stage at 1,610: from then on the class is paused. The processor posts a
  // buffer 50 ns after everything else is over, which is when the acknowledgement has come home: 700 ns after delivery,
  // and the 200 of the ingress stage.
  for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.send(message(0, 2, 2000, i, i));
  const auto paused = [&](std::size_t place) {
    return run.stand.nics.counters()[1].values[static_cast<std::size_t>(Counter::hni_rx_paused) + place];
  };
  std::uint64_t meanwhile = 0;
  run.stand.at(2000 * ns, [&] { meanwhile = paused(0); });
  run.run();
  CHECK(meanwhile == 2000 - 1610);
  CHECK(paused(0) == 1410 + 700 + 200 + 50 - 1610);
  for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.receive(receive_of(2, 100 + i, i));
  run.run();
  run.stand.at(run.stand.engine.now().ps + 9000 * ns, [] {});
  run.run();
  CHECK(paused(0) == 750);
  for (std::size_t place = 1; place < 8; ++place) CHECK(paused(place) == 0);
}

TEST_CASE("a lossless portal lets messages wait for a buffer, and those behind them in their class") {
  for (const bool lossless : {false, true}) {
    Working run(100);
    EndpointSettings settings;
    settings.overflow_buffers = 1;
    settings.overflow_buffer = Bytes{20'000};  // one message of 2,000 B, as there must be room for a long one
    settings.lossless = lossless;
    run.reopen(2, settings);
    for (std::uint64_t i = 0; i < 4; ++i) run.stand.nics.send(message(0, 2, 2000, i, i));
    SendCommand quick = message(0, 2, 8, 9, 9);
    quick.traffic_class = TrafficClass::low_latency;
    run.stand.nics.receive(receive_of(2, 19, 9));
    run.stand.nics.send(quick);
    run.stand.nics.send(message(0, 2, 8, 10, 10));
    run.stand.nics.receive(receive_of(2, 110, 10));
    run.run();
    CHECK((run.totals().messages_refused > 0) == !lossless);
    CHECK((run.totals().messages_paused > 0) == lossless);
    // What is quick finds its receive at once; the last one waits in line although it has one.
    if (lossless) CHECK(run.received_sends() == std::vector<std::uint64_t>{9, 10});
    const auto is_quick = [](const std::string& line) { return line.find("received 9 ") != std::string::npos; };
    if (lossless) CHECK(is_quick(run.stand.log.front()));
    for (std::uint64_t i = 0; i < 4; ++i) run.stand.nics.receive(receive_of(2, 100 + i, i));
    run.run();
    CHECK(run.received_sends().size() == 6);
    CHECK(run.stand.nics.at_rest());
    int sent = 0;
    for (const std::string& line : run.stand.log) sent += line.find(" sent ") != std::string::npos ? 1 : 0;
    CHECK(sent == 6);
  }
}
