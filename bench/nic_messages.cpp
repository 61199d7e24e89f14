// Two-sided messages through the NICs alone, for counting instructions where no clock can be trusted: a network with
// constant times of flight, a host that does nothing but its CPUs' work. All messages are of one kind: inline, eager,
// unexpected (and eager) or rendezvous, of which every third is unexpected; or a quarter each. Prints how many were
// received; two counts with different numbers of messages give what one costs.
//
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null build/bench/nic-messages 100000 [KIND]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "core/nic/nic.hpp"

namespace dryfly {
namespace {

constexpr std::uint64_t ns = 1000;
constexpr std::uint32_t endpoints = 64;

class FlatNetwork final : public Carrier, public Handler {
 public:
  explicit FlatNetwork(Engine& engine) : engine_(engine) { engine_.attach(ComponentClass::fabric, *this); }
  void connect(TransferSink& sink) override { sink_ = &sink; }
  void attach(HostBus&) override {}
  void submit(const Transfer& transfer) override {
    ++in_flight_;
    engine_.schedule(engine_.now() + Duration{1000 * ns}, std::uint64_t{transfer.handle} << 1);
    engine_.schedule(engine_.now() + Duration{1700 * ns}, std::uint64_t{transfer.handle} << 1 | 1);
  }
  void handle(Event event) override {
    const auto handle = static_cast<std::uint32_t>(event.key >> 1);
    if ((event.key & 1) == 0) return sink_->delivered(handle, 3);
    --in_flight_;
    sink_->acknowledged(handle);
  }
  bool takes_ordered() const override { return true; }
  bool at_rest() const { return in_flight_ == 0; }

 private:
  Engine& engine_;
  TransferSink* sink_ = nullptr;
  std::uint64_t in_flight_ = 0;
};

class Traffic final : public Host, public Handler {
 public:
  // `kind`: of kinds; mixed if there is none of that number.
  Traffic(std::uint32_t rounds, std::uint32_t kind)
      : rounds_(rounds), kind_(kind), network_(engine_), nics_(engine_, network_, *this, spec()) {
    engine_.attach(ComponentClass::host, *this);
    for (std::uint32_t i = 0; i < endpoints; ++i) nics_.open_endpoint(EndpointId{i}, NicId{i}, NodeId{i});
  }

  std::uint64_t run() {
    for (std::uint32_t round = 0; round < rounds_; ++round) {
      schedule(std::uint64_t{round} * 100 * ns, round << 1);                  // its message
      schedule(std::uint64_t{round} * 100 * ns + 9000 * ns, round << 1 | 1);  // its receive, where that comes late
    }
    engine_.run(never);
    return received_;
  }
  bool at_rest() const { return nics_.at_rest() && network_.at_rest(); }

  void handle(Event event) override {
    const auto what = static_cast<std::uint32_t>(event.key);
    if (what & works) {
      const EndpointId at = work_at_[what & ~works];
      return nics_.worked(at, work_[what & ~works]);
    }
    const std::uint32_t round = what >> 1;
    const std::uint32_t kind = kind_ < 4 ? kind_ : round % 4;
    const bool unexpected = kind == 2 || (kind == 3 && round % 3 == 0);
    const EndpointId source{round % endpoints};
    const EndpointId target{(round * 7 + 1) % endpoints == source.value ? (source.value + 1) % endpoints
                                                                        : (round * 7 + 1) % endpoints};
    if (unexpected == ((what & 1) != 0)) receive(round, target);
    if ((what & 1) != 0) return;
    constexpr std::uint64_t sizes[] = {8, 4096, 4096, 100'000};
    nics_.send({.source = source,
                .target = target,
                .envelope = {.tagged = true, .tag = round},
                .size = Bytes{sizes[kind]},
                .token = round});
  }

  void sent(EndpointId, Token) override {}
  void received(const Received&) override { ++received_; }
  void send_failed(EndpointId, Token, int) override {}
  void receive_failed(const Received&, int) override {}
  void peeked(const Peeked&) override {}
  void cancelled(EndpointId, Token) override {}
  void dropped(EndpointId, Token) override {}
  int apply(EndpointId, Token) override { return 0; }
  void rma_done(EndpointId, Token, int) override {}
  void rma_delivered(const RmaCommand&, bool, std::uint32_t) override {}
  void needs_processor(EndpointId at, const Work& work) override {
    work_.push_back(work);
    work_at_.push_back(at);
    schedule(engine_.now().ps + 50 * ns, static_cast<std::uint32_t>(work_.size() - 1) | works);
  }

 private:
  static constexpr std::uint32_t works = 1U << 31;

  static NicSpec spec() {
    return {.inline_max = Bytes{192},
            .pushed_max = Bytes{96},
            .eager_max = Bytes{18'433},
            .rendezvous_head = Bytes{2048},
            .egress_latency = {100 * ns},
            .dma_read_latency = {300 * ns},
            .ingress_latency = {200 * ns},
            .command_interval = {10 * ns},
            .memory = {.copy = {50 * ns}, .copy_rate = {1'000'000'000}}};
  }
  void receive(std::uint32_t round, EndpointId target) {
    ReceiveCommand command;
    command.at = target;
    command.tagged = true;
    command.tag = round;
    command.capacity = Bytes{1'000'000};
    command.token = round;
    nics_.receive(command);
  }
  void schedule(std::uint64_t ps, std::uint32_t what) {
    engine_.schedule(Instant{ps}, static_cast<std::uint64_t>(ComponentClass::host) << component_class_shift | what);
  }

  std::uint32_t rounds_;
  std::uint32_t kind_;
  Engine engine_;
  FlatNetwork network_;
  Nics nics_;
  std::uint64_t received_ = 0;
  std::vector<Work> work_;
  std::vector<EndpointId> work_at_;
};

}  // namespace
}  // namespace dryfly

int main(int argc, char** argv) {
  constexpr const char* kinds[] = {"inline", "eager", "unexpected", "rendezvous"};
  const auto rounds = static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100'000);
  std::uint32_t kind = 0;
  while (kind < std::size(kinds) && (argc < 3 || std::strcmp(argv[2], kinds[kind]) != 0)) ++kind;
  dryfly::Traffic traffic(rounds, kind);
  const std::uint64_t received = traffic.run();
  std::printf("%llu messages of %u received, %s\n", static_cast<unsigned long long>(received), rounds,
              kind < std::size(kinds) ? kinds[kind] : "mixed");
  return received == rounds && traffic.at_rest() ? EXIT_SUCCESS : EXIT_FAILURE;
}
