// Two-sided messages, instants exact to the picosecond; test_stand.hpp has the figures that the sums are made of.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/unit/random.hpp"
#include "testing/test_stand.hpp"

namespace dryfly::nic {
namespace {

using Log = TestStand::Log;

TEST_CASE("an inline message takes egress, flight and ingress; its acknowledgement completes the send") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20));
  stand.nics.send(message(0, 2, 96, 10));
  CHECK_FALSE(stand.nics.at_rest());
  stand.run();
  // 100 + 1,000 + 200, and 700 back.
  CHECK(stand.log == Log{"1300 received 10 in 20 at 2", "2000 sent 10 from 0"});
  CHECK(stand.all_received[0].protocol == Protocol::inlined);
  CHECK(stand.nics.at_rest());
}

TEST_CASE("an inline command that is too long to be written to the NIC is fetched from host memory") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20));
  stand.nics.send(message(0, 2, 97, 10));
  stand.run();
  CHECK(stand.log == Log{"1600 received 10 in 20 at 2", "2300 sent 10 from 0"});  // 300 later
  CHECK(stand.all_received[0].protocol == Protocol::inlined);
}

TEST_CASE("an eager message is fetched from host memory first") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20));
  stand.nics.send(message(0, 2, 193, 10));
  stand.run();
  CHECK(stand.log == Log{"1600 received 10 in 20 at 2", "2300 sent 10 from 0"});  // 300 later
  CHECK(stand.all_received[0].protocol == Protocol::eager);
}

TEST_CASE("a rendezvous is a request, a Get by the target NIC, the data and a done message") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20));
  stand.nics.send(message(0, 2, 100'000, 10));
  stand.run();
  // Request: 100 + 300 to the wire, 1,400 there, matched at 1,600. Get there at 2,600, payload fetched at 2,900,
  // there at 3,900, placed at 4,100. Done there at 5,100, acknowledged at 5,800.
  CHECK(stand.log == Log{"4100 received 10 in 20 at 2", "5100 sent 10 from 0"});
  CHECK(stand.engine.now() == Instant{5800 * ns});
  CHECK(stand.all_received[0].size == Bytes{100'000});
  CHECK(stand.all_received[0].protocol == Protocol::rendezvous);
  CHECK(stand.nics.at_rest());

  const auto& submitted = stand.network.submitted;
  REQUIRE(submitted.size() == 4);
  const std::uint64_t instants[] = {400, 1600, 2900, 4100};
  const std::uint64_t sizes[] = {2048, 0, 97'952, 0};
  const std::uint32_t sources[] = {0, 1, 0, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(submitted[i].at == Instant{instants[i] * ns});
    CHECK(submitted[i].transfer.size == Bytes{sizes[i]});
    CHECK(submitted[i].transfer.source == NicId{sources[i]});
    CHECK(submitted[i].transfer.target == NicId{1 - sources[i]});
    CHECK(submitted[i].transfer.ordered == (i == 0));
  }
}

TEST_CASE("the NIC's Get of a rendezvous leaves a latency of its own after the match, and holds up nothing else") {
  NicSpec spec = TestStand::round_figures();
  spec.rendezvous_latency = {500 * ns};
  TestStand stand{spec};
  stand.nics.receive(receive_of(2, 20));
  stand.nics.send(message(0, 2, 100'000, 10));
  stand.at(1600 * ns, [&] { stand.nics.send(message(2, 0, 8, 11)); });
  stand.run();
  // As above up to the match at 1,600; the message the other way passes by the Get, which leaves at 2,100.
  CHECK(std::ranges::count(stand.log, "4600 received 10 in 20 at 2") == 1);
  const auto& submitted = stand.network.submitted;
  REQUIRE(submitted.size() >= 3);
  CHECK(submitted[1].at == Instant{1700 * ns});
  CHECK(submitted[1].transfer.size == Bytes{8});
  CHECK(submitted[2].at == Instant{2100 * ns});
  CHECK(submitted[2].transfer.size == Bytes{0});
}

TEST_CASE("the largest eager message is eager, one byte more is a rendezvous") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20));
  stand.nics.receive(receive_of(2, 21));
  stand.nics.send(message(0, 2, 18'433, 10));
  stand.nics.send(message(0, 2, 18'434, 11));
  stand.run();
  REQUIRE(stand.all_received.size() == 2);
  CHECK(stand.all_received[0].protocol == Protocol::eager);
  CHECK(stand.all_received[1].protocol == Protocol::rendezvous);
}

TEST_CASE("an unexpected eager message is received the ingress latency after its receive arrives") {
  TestStand stand;
  stand.nics.send(message(0, 2, 8, 10));
  stand.at(2000 * ns, [&] {
    CHECK_FALSE(stand.nics.at_rest());  // acknowledged, but unmatched
    stand.nics.receive(receive_of(2, 20));
  });
  stand.run();
  CHECK(stand.log == Log{"2000 sent 10 from 0", "2200 received 10 in 20 at 2"});
  CHECK(stand.nics.totals().unexpected_messages == 1);
  CHECK(stand.nics.totals().list_entries_max == 1);
}

TEST_CASE("an unexpected rendezvous is asked for when its receive arrives") {
  TestStand stand;
  stand.nics.send(message(0, 2, 100'000, 10));
  stand.at(2000 * ns, [&] { stand.nics.receive(receive_of(2, 20)); });
  stand.run();
  // Get there at 3,000, fetched at 3,300, there at 4,300, placed at 4,500; done there at 5,500.
  CHECK(stand.log == Log{"4500 received 10 in 20 at 2", "5500 sent 10 from 0"});
}

TEST_CASE("what lies in a buffer of the provider's and belongs to a GPU is told of: all of a message, or a head") {
  const auto come = [](std::uint64_t bytes, bool late, std::uint8_t gpu, MatchMode matching) {
    TestStand stand;
    stand.nics.open_endpoint(EndpointId{4}, NicId{1}, NodeId{1}, {.match_mode = matching});
    const auto receive = [&] {
      ReceiveCommand command = receive_of(4, 20);
      command.gpu = gpu;
      stand.nics.receive(command);
    };
    if (!late) receive();
    stand.nics.send(message(0, 4, bytes, 10));
    if (late) stand.at(5000 * ns, receive);
    stand.run();
    bool told_of_head = false;
    for (const std::string& line : stand.log) told_of_head |= line.find("head of 2048 in 20") != std::string::npos;
    const bool lies = !stand.all_received.empty() && stand.all_received[0].lies_in_buffer;
    return std::pair{lies, told_of_head};
  };
  using Told = std::pair<bool, bool>;
  constexpr MatchMode hardware = MatchMode::hardware;
  CHECK(come(8192, false, 1, hardware) == Told{false, false});
  CHECK(come(8192, true, 1, hardware) == Told{true, false});
  CHECK(come(8192, false, 1, MatchMode::software) == Told{true, false});  // in a request buffer
  CHECK(come(100'000, false, 1, hardware) == Told{false, false});
  CHECK(come(100'000, true, 1, hardware) == Told{false, true});
  CHECK(come(100'000, true, 0, hardware) == Told{false, false});  // the host's
}

TEST_CASE("one NIC takes one command per interval, whichever end-point gives it; another NIC does not wait") {
  TestStand stand;
  stand.nics.send(message(0, 2, 8, 10));
  stand.nics.send(message(1, 2, 8, 11));
  stand.nics.send(message(0, 2, 8, 12));
  stand.nics.send(message(2, 0, 8, 13));
  stand.run();
  std::map<Instant, std::uint32_t> sources;
  for (const auto& submission : stand.network.submitted) {
    if (submission.transfer.source == NicId{0}) sources[submission.at] = 0;
  }
  REQUIRE(stand.network.submitted.size() == 4);
  CHECK(sources.size() == 3);
  CHECK(sources.contains(Instant{100 * ns}));
  CHECK(sources.contains(Instant{110 * ns}));
  CHECK(sources.contains(Instant{120 * ns}));
  CHECK(stand.network.submitted[1].at == Instant{100 * ns});
}

TEST_CASE("an inline command does not overtake a DMA command of its end-point, but one of another end-point does") {
  TestStand stand;
  stand.nics.send(message(0, 2, 4096, 10));  // ready at 400
  stand.nics.send(message(0, 2, 8, 11));     // ready at 110, leaves at 400
  stand.nics.send(message(1, 2, 8, 12));     // ready at 120
  for (Token token = 20; token < 23; ++token) stand.nics.receive(receive_of(2, token));
  stand.run();
  // 120, 400 and 400, each + 1,200.
  CHECK(Log(stand.log.begin(), stand.log.begin() + 3) ==
        Log{"1320 received 12 in 20 at 2", "1600 received 10 in 21 at 2", "1600 received 11 in 22 at 2"});
}

TEST_CASE("a message within a node takes the way of any other: through its NIC, or from NIC to NIC") {
  TestStand stand;
  stand.nics.receive(receive_of(1, 20));
  stand.nics.receive(receive_of(3, 21));
  stand.nics.send(message(0, 1, 8, 10));
  stand.nics.send(message(2, 3, 8, 11));
  stand.run();
  CHECK(stand.log == Log{"1300 received 10 in 20 at 1", "1300 received 11 in 21 at 3", "2000 sent 10 from 0",
                         "2000 sent 11 from 2"});
  REQUIRE(stand.network.submitted.size() == 2);
  CHECK(stand.network.submitted[0].transfer.source == stand.network.submitted[0].transfer.target);
  CHECK(stand.all_received[0].on_node);
  CHECK(stand.all_received[1].on_node);
}

TEST_CASE("by memory the source copies into a segment and its target out of it, each one thing after the other") {
  TestStand stand;
  stand.open_in_memory();
  for (Token token = 20; token < 23; ++token) stand.nics.receive(receive_of(15, token));
  stand.nics.send(message(14, 15, 1000, 10));  // in the segment at 1,050, copied out until 2,100
  stand.nics.send(message(14, 15, 500, 11));   // in the segment at 1,600, copied out from 2,100 to 2,650
  stand.nics.send(message(15, 15, 0, 12));     // nothing to copy
  stand.run();
  CHECK(stand.log == Log{"0 sent 12 from 15", "0 received 12 in 20 at 15", "1050 sent 10 from 14",
                         "1600 sent 11 from 14", "2100 received 10 in 21 at 15", "2650 received 11 in 22 at 15"});
  CHECK(stand.network.submitted.empty());
  CHECK(stand.all_received[1].on_node);
  CHECK(stand.all_received[1].protocol == Protocol::eager);
}

TEST_CASE("what is too long for a segment the target reads from the source's memory, once it is matched") {
  TestStand stand;
  stand.open_in_memory();
  stand.nics.send(message(14, 15, 4097, 10));
  stand.at(3000 * ns, [&] { stand.nics.receive(receive_of(15, 20)); });
  stand.run();
  CHECK(stand.log == Log{"7147 received 10 in 20 at 15", "7147 sent 10 from 14"});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("what software has not staged is read from the source, however short it is") {
  TestStand stand;
  stand.open_in_memory();
  stand.nics.close_endpoint(EndpointId{14});
  stand.nics.open_endpoint(EndpointId{14}, NicId{5}, NodeId{1}, {.eager_max = Bytes{999}, .in_memory = true});
  stand.nics.receive(receive_of(15, 20));
  stand.nics.send(message(14, 15, 1000, 10));
  stand.run();
  CHECK(stand.log == Log{"1050 received 10 in 20 at 15", "1050 sent 10 from 14"});
}

TEST_CASE(
    "memory of a GPU is handed over and copied once, at the rate of the pair, and a segment into one at its link's") {
  NicSpec spec = TestStand::round_figures();
  constexpr std::uint64_t gb = 1'000'000'000;
  spec.memory.gpus =
      GpuCopies({100 * ns}, {200 * ns}, {{{}, {2 * gb}, {2 * gb}}, {{}, {8 * gb}, {4 * gb}}, {{}, {}, {8 * gb}}});
  const auto copied = [&](std::uint8_t from, std::uint8_t to) {
    TestStand stand(spec);
    stand.open_in_memory();
    ReceiveCommand receive = receive_of(15, 20);
    receive.gpu = to;
    stand.nics.receive(receive);
    SendCommand send = message(14, 15, 1000, 10);
    send.gpu = from;
    stand.nics.send(send);
    stand.run();
    CHECK(stand.nics.at_rest());
    return stand.log;
  };
  CHECK(copied(1, 2) == Log{"350 received 10 in 20 at 15", "350 sent 10 from 14"});
  CHECK(copied(2, 1) == Log{"350 received 10 in 20 at 15", "350 sent 10 from 14"});
  CHECK(copied(2, 2) == Log{"325 received 10 in 20 at 15", "325 sent 10 from 14"});
  CHECK(copied(2, 0) == Log{"600 received 10 in 20 at 15", "600 sent 10 from 14"});
  CHECK(copied(0, 1) == Log{"1050 sent 10 from 14", "1650 received 10 in 20 at 15"});
  // Nobody has said what copies of a third GPU take: a core makes them.
  CHECK(copied(3, 0) == Log{"1050 received 10 in 20 at 15", "1050 sent 10 from 14"});
}

TEST_CASE("an unexpected message in a segment is copied when its receive is there, and its sender is told once") {
  TestStand stand;
  stand.open_in_memory();
  stand.nics.send(message(14, 15, 1000, 10));
  stand.at(1500 * ns, [&] {
    stand.nics.receive(receive_of(15, 20));
    CHECK(stand.all_received.empty());  // nothing is received inside the command
  });
  stand.run();
  CHECK(stand.log == Log{"1050 sent 10 from 14", "2550 received 10 in 20 at 15"});
}

TEST_CASE("memory is for end-points of one node that both have it") {
  TestStand stand;
  stand.open_in_memory();
  stand.nics.receive(receive_of(16, 20));
  stand.nics.receive(receive_of(3, 21));
  stand.nics.send(message(14, 16, 8, 10));  // another node
  stand.nics.send(message(15, 3, 8, 11));   // its NIC only
  stand.run();
  CHECK(stand.all_received.size() == 2);
  CHECK(stand.network.submitted.size() == 2);
}

TEST_CASE("cores that copy together get no more than the memory of their node carries; in caches they do") {
  for (const std::uint64_t cached : {0, 50'000}) {
    NicSpec spec = TestStand::round_figures();
    spec.memory.copy = {};
    spec.memory.cached = Bytes{cached};
    spec.memory.rate = {3'000'000'000};  // each copy reads and writes: 1.5 GB/s
    TestStand stand{spec};
    stand.round_instants = false;
    constexpr std::uint32_t pairs = 6;
    for (std::uint32_t pair = 0; pair < pairs; ++pair) {
      const std::uint32_t source = 20 + 2 * pair;
      for (const std::uint32_t endpoint : {source, source + 1}) {
        stand.nics.open_endpoint(EndpointId{endpoint}, NicId{1}, NodeId{1}, {.in_memory = true});
      }
      for (Token token = 0; token < 100; ++token) {
        stand.nics.receive(receive_of(source + 1, token));
        stand.nics.send(message(source, source + 1, 50'000, token));
      }
    }
    stand.run();
    CHECK(stand.all_received.size() == pairs * 100);
    const auto bytes = static_cast<double>(pairs * 100 * 50'000);
    const double rate = bytes / static_cast<double>(stand.engine.now().ps) * 1e12;
    if (cached == 0) {
      CHECK(rate <= 1.5e9);
      CHECK(rate >= 1.35e9);
    } else {
      CHECK(rate == doctest::Approx(6e9));
    }
  }
}

TEST_CASE("a receive takes the message that arrived first, a message the receive posted first; wildcards included") {
  TestStand stand;
  ReceiveCommand directed = receive_of(2, 20, 0x17);
  directed.any_source = false;
  directed.source = EndpointId{1};
  ReceiveCommand masked = receive_of(2, 21, 0x07);
  masked.ignore = 0xf0;
  stand.nics.send(message(0, 2, 8, 10, 0x17));
  stand.nics.send(message(0, 2, 8, 11, 0x27));
  stand.nics.send(message(1, 2, 8, 12, 0x17));
  stand.at(2000 * ns, [&] {
    stand.nics.receive(directed);                 // takes 12, the only one from 1
    stand.nics.receive(masked);                   // takes 10, the first of the two left
    stand.nics.receive(receive_of(2, 22, 0x17));  // only 11 is left: posted
    stand.nics.receive(receive_of(2, 23, 0x27));  // takes 11
    masked.token = 24;
    stand.nics.receive(masked);  // posted
    directed.token = 25;
    stand.nics.receive(directed);  // posted
  });
  stand.at(3000 * ns, [&] {
    stand.nics.send(message(0, 2, 8, 13, 0x17));  // 22 and 24 accept it
    stand.nics.send(message(1, 2, 8, 14, 0x17));  // 24 and 25
    stand.nics.send(message(1, 2, 8, 15, 0x17));  // 25
  });
  stand.run();
  std::map<Token, Token> receive_of_message;
  for (const Received& received : stand.all_received) receive_of_message[received.send] = received.receive;
  CHECK(receive_of_message == std::map<Token, Token>{{12, 20}, {10, 21}, {13, 22}, {11, 23}, {14, 24}, {15, 25}});
}

TEST_CASE("tagged receives take tagged messages only, untagged ones untagged, and data travels along") {
  TestStand stand;
  SendCommand plain = untagged(message(0, 2, 8, 10, 5));
  plain.envelope.has_data = true;
  plain.envelope.data = 77;
  stand.nics.send(plain);
  stand.nics.send(message(0, 2, 8, 11, 5));
  ReceiveCommand tagged = receive_of(2, 20, 5);
  ReceiveCommand other = receive_of(2, 21);
  other.tagged = false;
  stand.nics.receive(tagged);
  stand.nics.receive(other);
  stand.run();
  REQUIRE(stand.all_received.size() == 2);
  CHECK(stand.all_received[0].receive == 21);
  CHECK(stand.all_received[0].envelope.data == 77);
  CHECK(stand.all_received[0].envelope.has_data);
  CHECK(stand.all_received[1].receive == 20);
}

TEST_CASE("a message longer than the buffer reports its own size") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20, 0, 100));
  stand.nics.receive(receive_of(2, 21, 0, 100));
  stand.nics.send(message(0, 2, 4096, 10));
  stand.nics.send(message(0, 2, 100'000, 11));
  stand.run();
  REQUIRE(stand.all_received.size() == 2);
  CHECK(stand.all_received[0].size == Bytes{4096});
  CHECK(stand.all_received[1].size == Bytes{100'000});
}

TEST_CASE("a cancelled receive takes nothing; one that has matched is not cancelled") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20));
  stand.nics.receive(receive_of(2, 21));
  stand.nics.cancel(EndpointId{2}, 20);
  stand.nics.cancel(EndpointId{2}, 20);  // gone already
  stand.nics.send(message(0, 2, 100'000, 10));
  stand.at(2000 * ns, [&] { stand.nics.cancel(EndpointId{2}, 21); });  // matched at 1,600
  stand.run();
  CHECK(stand.log == Log{"0 cancelled 20", "4100 received 10 in 21 at 2", "5100 sent 10 from 0"});
}

TEST_CASE("at one instant an arrival comes before a cancel") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20));
  stand.nics.send(message(0, 2, 8, 10));
  stand.at(1300 * ns, [&] { stand.nics.cancel(EndpointId{2}, 20); });
  stand.run();
  CHECK(stand.log == Log{"1300 received 10 in 20 at 2", "2000 sent 10 from 0"});
}

PeekCommand peek_at(std::uint32_t at, Token token, std::uint64_t tag = 0) {
  return {.at = EndpointId{at}, .tagged = true, .tag = tag, .token = token};
}

TEST_CASE("a peek sees the oldest message and leaves it; a claim reserves it for its own receive") {
  TestStand stand;
  stand.nics.peek(peek_at(2, 29));
  stand.nics.send(message(0, 2, 8, 10));
  stand.nics.send(message(0, 2, 16, 11));
  stand.at(2000 * ns, [&] {
    stand.nics.peek(peek_at(2, 30));
    PeekCommand claim = peek_at(2, 31);
    claim.claim = true;
    stand.nics.peek(claim);
    stand.nics.peek(peek_at(2, 32));
    stand.nics.receive(receive_of(2, 20));
    stand.nics.peek(peek_at(2, 33));
    stand.nics.receive_claimed(receive_of(2, 21), 31);
  });
  stand.run();
  CHECK(stand.log == Log{"0 peeked 29 none", "2000 sent 10 from 0", "2000 peeked 30 found 10",
                         "2000 peeked 31 found 10", "2000 peeked 32 found 11", "2000 peeked 33 none",
                         "2010 sent 11 from 0", "2200 received 11 in 20 at 2", "2200 received 10 in 21 at 2"});
  CHECK(stand.all_peeked[1].size == Bytes{8});
  CHECK(stand.all_peeked[1].source == EndpointId{0});
  CHECK(stand.nics.at_rest());
}

TEST_CASE(
    "a waiting peek is answered by the next message without a receive, in order, and at once by one that is there") {
  TestStand stand;
  PeekCommand watch = peek_at(2, 30);
  watch.claim = watch.waits = true;
  stand.nics.peek(watch);
  stand.nics.receive(receive_of(2, 20));
  for (const Token token : {10, 11, 12}) stand.nics.send(message(0, 2, 8, token));
  stand.at(2000 * ns, [&] {
    watch.token = 31;
    stand.nics.peek(watch);  // finds 12
    watch.token = 32;
    stand.nics.peek(watch);  // and is still waiting when its end-point is closed
    stand.nics.receive_claimed(receive_of(2, 21), 30);
    stand.nics.receive_claimed(receive_of(2, 22), 31);
  });
  stand.at(3000 * ns, [&] { stand.nics.close_endpoint(EndpointId{2}); });
  stand.run();
  CHECK(stand.log == Log{"1300 received 10 in 20 at 2", "1310 peeked 30 found 11", "2000 sent 10 from 0",
                         "2000 peeked 31 found 12", "2010 sent 11 from 0", "2020 sent 12 from 0",
                         "2200 received 11 in 21 at 2", "2200 received 12 in 22 at 2"});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("a discard drops the message, claimed or not, and a rendezvous sender is released") {
  TestStand stand;
  stand.nics.send(message(0, 2, 8, 10, 1));
  stand.nics.send(message(0, 2, 100'000, 11, 2));
  stand.at(2000 * ns, [&] {
    PeekCommand claim = peek_at(2, 30, 1);
    claim.claim = true;
    stand.nics.peek(claim);
    PeekCommand discard = peek_at(2, 31, 2);
    discard.discard = true;
    stand.nics.peek(discard);
    claim.discard = true;
    stand.nics.peek(claim);
    stand.nics.peek(peek_at(2, 32, 2));
    CHECK(stand.nics.totals().unexpected_messages == 2);
  });
  stand.run();
  // The done message of the rendezvous is there 1,000 later.
  CHECK(stand.log == Log{"2000 sent 10 from 0", "2000 peeked 30 found 10", "2000 peeked 31 found 11", "2000 dropped 11",
                         "2000 peeked 30 found 10", "2000 dropped 10", "2000 peeked 32 none", "3000 sent 11 from 0"});
  CHECK(stand.nics.at_rest());
}

ReceiveCommand multi_receive(std::uint32_t at, Token token, std::uint64_t capacity, std::uint64_t min_free) {
  ReceiveCommand command = receive_of(at, token, 0, capacity);
  command.tagged = false;
  command.multi_receive = true;
  command.min_free = Bytes{min_free};
  return command;
}

TEST_CASE("a multi-receive buffer fills from the front and is released with less than min_free left") {
  TestStand stand;
  stand.nics.receive(multi_receive(2, 20, 1000, 251));  // 1,000 - 3 x 250 = 250 is too little: takes three
  stand.nics.receive(multi_receive(2, 21, 1000, 250));  // 250 is enough: takes four
  for (Token token = 10; token < 17; ++token) stand.nics.send(untagged(message(0, 2, 250, token)));
  stand.run();
  REQUIRE(stand.all_received.size() == 7);
  const std::uint64_t offsets[] = {0, 250, 500, 0, 250, 500, 750};
  for (std::size_t i = 0; i < 7; ++i) {
    CAPTURE(i);
    CHECK(stand.all_received[i].send == 10 + i);
    CHECK(stand.all_received[i].receive == (i < 3 ? 20 : 21));
    CHECK(stand.all_received[i].offset == Bytes{offsets[i]});
    CHECK(stand.all_received[i].buffer_released == (i == 2 || i == 6));
  }
}

TEST_CASE("a message longer than what a multi-receive buffer has left ends the buffer, also with min_free 0") {
  TestStand stand;
  stand.nics.receive(multi_receive(2, 20, 1000, 0));
  stand.nics.receive(multi_receive(2, 21, 1000, 0));
  for (Token token = 10; token < 13; ++token) stand.nics.send(untagged(message(0, 2, 600, token)));
  stand.run();
  REQUIRE(stand.all_received.size() == 3);
  CHECK(stand.all_received[1].receive == 20);
  CHECK(stand.all_received[1].offset == Bytes{600});
  CHECK(stand.all_received[1].size == Bytes{600});  // 400 fit
  CHECK(stand.all_received[1].buffer_released);
  CHECK(stand.all_received[2].receive == 21);
}

TEST_CASE("a multi-receive takes waiting messages at once, and its last message to be placed releases it") {
  TestStand stand;
  stand.nics.send(untagged(message(0, 2, 20'000, 10)));  // rendezvous
  stand.nics.send(untagged(message(0, 2, 90, 11)));
  stand.at(3000 * ns, [&] { stand.nics.receive(multi_receive(2, 20, 20'100, 64)); });
  stand.run();
  // Only 10 bytes are left after the second, which is placed first: 3,200; the rendezvous 2,500 after its match.
  REQUIRE(stand.all_received.size() == 2);
  CHECK(stand.all_received[0].send == 11);
  CHECK(stand.all_received[0].offset == Bytes{20'000});
  CHECK_FALSE(stand.all_received[0].buffer_released);
  CHECK(stand.all_received[1].send == 10);
  CHECK(stand.all_received[1].offset == Bytes{0});
  CHECK(stand.all_received[1].buffer_released);
}

TEST_CASE("cancelling a multi-receive in use ends it with its last message, an idle one with a cancellation") {
  TestStand stand;
  stand.nics.receive(multi_receive(2, 20, 50'000, 64));
  stand.nics.receive(multi_receive(3, 21, 50'000, 64));
  stand.nics.send(untagged(message(0, 2, 20'000, 10)));
  stand.at(2000 * ns, [&] {
    stand.nics.cancel(EndpointId{2}, 20);
    stand.nics.cancel(EndpointId{3}, 21);
  });
  stand.run();
  CHECK(stand.log == Log{"2000 cancelled 21", "4100 received 10 in 20 at 2", "5100 sent 10 from 0"});
  CHECK(stand.all_received[0].buffer_released);
}

TEST_CASE("a closed end-point drops what waits, what is being placed and what comes, and every sender is released") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20, 1));
  stand.nics.receive(receive_of(2, 21, 9));
  stand.nics.send(message(0, 2, 100'000, 10, 1));  // matched at 1,600, its Get under way
  stand.nics.send(message(0, 2, 100'000, 11, 2));  // unexpected
  stand.nics.send(message(0, 2, 8, 12, 3));        // unexpected
  stand.at(2000 * ns, [&] { stand.nics.close_endpoint(EndpointId{2}); });
  stand.at(6000 * ns, [&] { stand.nics.send(message(0, 2, 8, 13, 9)); });
  stand.at(6000 * ns, [&] { stand.nics.send(message(1, 2, 100'000, 14, 9)); });
  stand.run();
  // 11 is ready at 410 and waits no longer than 10 behind: acknowledged with 12, which leaves at 410 too: 2,110.
  // 14 is taken at 6,010, on the wire at 6,410, there at 7,610, its done message at 8,610.
  CHECK(stand.log == Log{"2000 dropped 11", "2000 dropped 12", "2310 sent 12 from 0", "3000 sent 11 from 0",
                         "4100 dropped 10", "5100 sent 10 from 0", "7300 dropped 13", "7610 dropped 14",
                         "8000 sent 13 from 0", "8610 sent 14 from 1"});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("a claimed message is a list entry until it is received, and is dropped when its end-point closes") {
  TestStand stand;
  stand.nics.send(message(0, 2, 8, 10));
  stand.at(2000 * ns, [&] {
    PeekCommand claim = peek_at(2, 30);
    claim.claim = true;
    stand.nics.peek(claim);
    stand.nics.receive(receive_of(2, 20));
    CHECK(stand.nics.totals().list_entries_max == 2);
    stand.nics.close_endpoint(EndpointId{2});
  });
  stand.run();
  CHECK(stand.log == Log{"2000 sent 10 from 0", "2000 peeked 30 found 10", "2000 dropped 10"});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("an end-point opened again receives nothing that was matched in its earlier life") {
  TestStand stand;
  stand.nics.receive(receive_of(2, 20));
  stand.nics.send(message(0, 2, 100'000, 10));
  stand.at(2000 * ns, [&] {
    stand.nics.close_endpoint(EndpointId{2});
    stand.nics.open_endpoint(EndpointId{2}, NicId{1}, NodeId{1});
    stand.nics.receive(receive_of(2, 21));
  });
  stand.run();
  CHECK(stand.log == Log{"4100 dropped 10", "5100 sent 10 from 0"});
}

TEST_CASE("the totals count messages and bytes by protocol and hops") {
  TestStand stand;
  for (Token token = 20; token < 24; ++token) stand.nics.receive(receive_of(2, token));
  stand.nics.send(message(0, 2, 8, 10));
  stand.nics.send(message(0, 2, 4096, 11));
  stand.nics.send(message(0, 2, 100'000, 12));
  stand.nics.send(message(3, 2, 10, 13));
  stand.run();
  const NicTotals totals = stand.nics.totals();
  const auto row = [](Protocol protocol) { return static_cast<std::size_t>(protocol); };
  CHECK(totals.messages[row(Protocol::inlined)][3] == 1);
  CHECK(totals.bytes[row(Protocol::inlined)][3] == 8);
  CHECK(totals.messages[row(Protocol::eager)][3] == 1);
  CHECK(totals.bytes[row(Protocol::rendezvous)][3] == 100'000);
  CHECK(totals.messages[row(Protocol::inlined)][NicTotals::on_node_column] == 1);
  CHECK(totals.bytes[row(Protocol::inlined)][NicTotals::on_node_column] == 10);
  CHECK(totals.unexpected_messages == 0);
  CHECK(totals.list_entries_max == 4);
}

// Random traffic of all sizes over a network that delivers what is unordered at random. Every receive accepts every
// message of its end-point and receives are numbered as they are posted, so the n-th message matched is in the n-th.
std::vector<Received> random_traffic(std::uint64_t seed) {
  TestStand stand;
  const RandomStream stream(seed, 0, Purpose::test);
  stand.network.unordered_flight = [&](std::uint64_t index) {
    return Duration{(100 + stream.below(1'000'000 + index, 5000)) * ns};
  };
  constexpr std::uint64_t sizes[] = {0, 10, 1000, 10'000, 20'000, 90'000};
  Token sends = 0;
  Token receives = 0;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const std::uint32_t source = stream.below(6 * i, 4);
    const std::uint32_t target = stream.below(6 * i + 1, 4);
    const std::uint64_t size = sizes[stream.below(6 * i + 2, 6)];
    stand.at(stream.below(6 * i + 3, 200'000) * ns,
             [&stand, &sends, source, target, size] { stand.nics.send(message(source, target, size, sends++)); });
    stand.at(stream.below(6 * i + 4, 200'000) * ns,
             [&stand, &receives, target] { stand.nics.receive(receive_of(target, receives++)); });
  }
  stand.run();
  CHECK(stand.nics.at_rest());
  CHECK(stand.network.at_rest());
  CHECK(stand.all_received.size() == 2000);
  return stand.all_received;
}

TEST_CASE("messages of one pair are matched in the order sent, whatever their protocol and path") {
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    std::vector<Received> all = random_traffic(seed);
    std::sort(all.begin(), all.end(), [](const Received& a, const Received& b) { return a.send < b.send; });
    std::map<std::pair<EndpointId, EndpointId>, Token> last;
    for (const Received& received : all) {
      const auto [entry, first] = last.emplace(std::pair{received.source, received.at}, received.receive);
      if (first) continue;
      CHECK(entry->second < received.receive);
      entry->second = received.receive;
    }
  }
}

TEST_CASE("random traffic gives the same log twice") {
  const auto key = [](const Received& received) { return std::tuple{received.send, received.receive, received.size}; };
  const std::vector<Received> first = random_traffic(7);
  const std::vector<Received> second = random_traffic(7);
  CHECK(std::equal(first.begin(), first.end(), second.begin(), second.end(),
                   [&](const Received& a, const Received& b) { return key(a) == key(b); }));
}

}  // namespace
}  // namespace dryfly::nic
