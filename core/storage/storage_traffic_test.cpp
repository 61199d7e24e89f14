#include "core/storage/storage_traffic.hpp"

#include <doctest/doctest.h>

#include "core/network/packet/packet_network.hpp"
#include "testing/sample_machine.hpp"

namespace dryfly::storage {
namespace {

constexpr std::uint64_t us = 1'000'000;

// The sample machine: NICs 0 to 7 in group 0 are clients, 24 to 31 in group 3 servers.
std::string lines(const std::string& streams) {
  return "fabric.extra_flight.count 0\nstorage.seed 1\nstorage.servers 24-31\n"
         "storage.server_nic_rate_bytes_per_s 12000000000\nstorage.server_latency_ps 20000000\n"
         "storage.request_bytes 512\nstorage.in_flight 8\n" +
         streams;
}

std::string stream(int number, const std::string& direction, const std::string& nodes, const std::string& more = "") {
  const std::string entry = "storage.stream." + std::to_string(number) + ".";
  return entry + "direction " + direction + "\n" + entry + "nodes " + nodes + "\n" + entry +
         "nic_rate_bytes_per_s 2000000000\n" + entry + "transfer_bytes 65536\n" + entry + "from_ps 0\n" + entry +
         "class 3\n" + more;
}

struct Stand final : TransferSink {
  explicit Stand(const std::string& streams)
      : spec(fabric::SampleMachine{.more = lines(streams)}.spec()),
        dragonfly(spec),
        network(engine, dragonfly, spec),
        traffic(engine, network, Plan::read(spec, dragonfly), Framing{}) {
    traffic.network().connect(*this);
  }
  void delivered(std::uint32_t, std::uint32_t) override { job_delivered = engine.now(); }
  void acknowledged(std::uint32_t) override {}

  Spec spec;
  Engine engine;
  Dragonfly dragonfly;
  fabric::SampleMachine machine;
  PacketNetwork network;
  StorageTraffic traffic;
  Instant job_delivered;
};

TEST_CASE("a stream with an amount writes all of it, the rest of a transfer included, and comes to rest") {
  // 100,000 B in transfers of 64 KiB: one of 65,536 and one of 34,464 from each of two NICs.
  Stand stand("storage.streams 1\n" + stream(0, "write", "0-1", "storage.stream.0.nic_amount_bytes 100000\n"));
  stand.traffic.start(Instant{0});
  stand.engine.run(never);
  CHECK(stand.traffic.totals()[0].exchanges == 4);
  CHECK(stand.traffic.totals()[0].bytes == 200'000);
  CHECK(stand.network.at_rest());
  CHECK(stand.network.credit_bytes_outstanding() == 0);
}

TEST_CASE("a read is put by the server in order, a write is fetched by it") {
  for (const char* direction : {"read", "write"}) {
    CAPTURE(direction);
    Stand stand("storage.streams 1\n" + stream(0, direction, "0", "storage.stream.0.nic_amount_bytes 65536\n"));
    stand.traffic.start(Instant{0});
    stand.engine.run(never);
    const NicCounters& client = stand.traffic.counters().at(NicId{0});
    const auto value = [&](Counter counter) { return client.values[static_cast<std::size_t>(counter)]; };
    // 64 KiB are 32 frames of 2112 B (the bin 2048 to 4095); those of a write answer a Get, as class 1.
    const bool reads = std::string(direction) == "read";
    const auto bin = [&](Counter first, std::size_t place) {
      return client.values[static_cast<std::size_t>(first) + place];
    };
    CHECK(bin(Counter::hni_rx_ok, 9) == (reads ? 32 : 0));
    CHECK(bin(Counter::hni_tx_ok, 9) == (reads ? 0 : 32));
    CHECK(bin(Counter::hni_pkts_sent_by_tc, 1) == (reads ? 0 : 32));
    CHECK(value(Counter::pct_req_ordered) == 1);  // the request
    CHECK(value(Counter::pct_req_unordered) == 0);
  }
}

TEST_CASE("a stream keeps its rate where nothing stands against it") {
  Stand stand("storage.streams 1\n" + stream(0, "read", "0-3"));
  stand.traffic.start(Instant{0});
  stand.engine.run(Instant{5000 * us});
  // 4 NICs x 2 GB/s x 5 ms = 40 MB, less what is under way in the last 30 us.
  CHECK(stand.traffic.totals()[0].bytes > 39'000'000);
  CHECK(stand.traffic.totals()[0].bytes <= 40'000'000);
}

TEST_CASE("the servers' storage bounds what many clients get") {
  // 24 clients ask for 20 GB/s each of 8 servers that have 12 GB/s.
  std::string text = stream(0, "write", "0-23");
  text.replace(text.find("2000000000"), 10, "20000000000");
  Stand stand("storage.streams 1\n" + text);
  stand.traffic.start(Instant{0});
  stand.engine.run(Instant{2000 * us});
  CHECK(stand.traffic.totals()[0].bytes < 8 * 12'000'000'000ULL / 500);
  CHECK(stand.traffic.totals()[0].bytes > 8 * 9'000'000'000ULL / 500);
}

TEST_CASE("after stop() no exchange begins, and after the end of a stream none either") {
  Stand stopped("storage.streams 1\n" + stream(0, "write", "0-3"));
  stopped.traffic.start(Instant{0});
  stopped.engine.run(Instant{300 * us});
  stopped.traffic.stop();
  stopped.engine.run(never);
  CHECK(stopped.engine.now() < Instant{500 * us});
  CHECK(stopped.network.at_rest());

  Stand ended("storage.streams 1\n" + stream(0, "write", "0-3", "storage.stream.0.until_ps 300000000\n"));
  ended.traffic.start(Instant{0});
  ended.engine.run(never);
  CHECK(ended.engine.now() < Instant{500 * us});
  // 2 GB/s are 64 KiB in 32.8 us: nine or ten times in 300 us, from four NICs.
  CHECK(ended.traffic.totals()[0].exchanges >= 36);
  CHECK(ended.traffic.totals()[0].exchanges <= 40);
}

TEST_CASE("the engine stops when the job has nothing in the network, though other traffic goes on") {
  Stand stand("storage.streams 1\n" + stream(0, "write", "0-7"));
  stand.traffic.start(Instant{0});
  Transfer transfer;
  transfer.source = {0};
  transfer.target = {25};
  transfer.size = {1'000'000};
  stand.traffic.network().submit(transfer);
  while (stand.traffic.network().under_way() != 0) {
    stand.traffic.network().stop_engine_when_idle(true);
    stand.engine.run(never);
  }
  // 1 MB takes 41 us at 24.2 GB/s, more beside the writes, and its acknowledgement a few.
  CHECK(stand.job_delivered > Instant{41 * us});
  CHECK(stand.engine.now() > stand.job_delivered);
  CHECK(stand.engine.now() < stand.job_delivered + Duration{5 * us});
  CHECK(!stand.network.at_rest());
}

TEST_CASE("a job's transfer takes longer beside reads into its NIC, and the same time each run") {
  const auto time_beside = [](const std::string& streams) {
    Stand stand(streams);
    stand.traffic.start(Instant{0});
    stand.engine.run(Instant{200 * us});
    Transfer transfer;
    transfer.source = {9};
    transfer.target = {0};
    transfer.size = {4'000'000};
    const Instant begun = stand.engine.now();
    stand.traffic.network().submit(transfer);
    while (stand.traffic.network().under_way() != 0) {
      stand.traffic.network().stop_engine_when_idle(true);
      stand.engine.run(never);
    }
    return (stand.job_delivered - begun).ps;
  };
  std::string text = stream(0, "read", "0");
  text.replace(text.find("2000000000"), 10, "12000000000");
  const std::uint64_t alone = time_beside("storage.streams 0\n");
  const std::uint64_t beside = time_beside("storage.streams 1\n" + text);
  // 12 of 24.2 GB/s are gone.
  CHECK(beside > alone * 3 / 2);
  CHECK(beside == time_beside("storage.streams 1\n" + text));
}

TEST_CASE("what a NIC that is down gives up is counted, and the others go on") {
  const std::string faults = fabric::fault_times(0) +
                             "faults.seed 1\nfaults.count 1\n"
                             "faults.0.kind down\nfaults.0.where n0\nfaults.0.from_ps 0\n";
  Stand stand("storage.streams 1\n" + stream(0, "read", "0-1", "storage.stream.0.nic_amount_bytes 655360\n") + faults);
  stand.network.restart(Instant{0});
  stand.traffic.start(Instant{0});
  stand.engine.run(never);
  // Ten exchanges of each: those of NIC 0 fail by their requests, eight at a time. One time-out for each eight.
  CHECK(stand.traffic.totals()[0].failed == 10);
  CHECK(stand.traffic.totals()[0].exchanges == 10);
  CHECK(stand.network.at_rest());
  const auto accounts = stand.network.nic_accounts(stand.engine.now());
  CHECK(accounts.at(NicId{0}).timeouts.ordered == stand.network.totals().faults.network_timeouts);
  CHECK(accounts.at(NicId{0}).timeouts.unordered == 0);
}

TEST_CASE("nodes and directions that cannot be read are refused") {
  const auto refused = [](const std::string& streams) {
    const Spec spec = fabric::SampleMachine{.more = lines(streams)}.spec();
    CHECK_THROWS_AS(Plan::read(spec, Dragonfly{spec}), SpecError);
  };
  refused("storage.streams 1\n" + stream(0, "write", "0-32"));
  refused("storage.streams 1\n" + stream(0, "write", "5-3"));
  refused("storage.streams 1\n" + stream(0, "write", "a"));
  refused("storage.streams 1\n" + stream(0, "copy", "1"));
}

}  // namespace
}  // namespace dryfly::storage
