// A network that keeps the contract and has no links: every transfer takes the same time, but as a test says otherwise.
// Flight 1,000 ns, acknowledgement 700 ns after delivery, three hops, or none from a NIC to itself. A NIC that is cut
// off takes and gives nothing any more: what it concerns is sent twice, in the time of once, and has failed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"

namespace dryfly {

class FakeNetwork final : public Network, public Handler {
 public:
  explicit FakeNetwork(Engine& engine) : engine_(engine) { engine_.attach(ComponentClass::fabric, *this); }

  void connect(TransferSink& sink) override {
    DRYFLY_CHECK(sink_ == nullptr);
    sink_ = &sink;
  }
  void attach(HostBus& bus) override { bus_ = &bus; }
  bool takes_ordered() const override { return true; }
  void submit(const Transfer& transfer) override {
    submitted.push_back({engine_.now(), transfer, fate_of(transfer)});
    in_flight += 2;
    depart(submitted.size() - 1);
  }

  bool at_rest() const override { return in_flight == 0; }
  void restart(Instant start) override {
    DRYFLY_CHECK(at_rest() && start >= engine_.now());
    submitted.clear();
    totals_ = {};
    accounts_.clear();
  }
  void end_faults() override { cut_.clear(); }
  NetworkTotals totals() const override { return totals_; }
  std::map<NicId, NicTrackers> trackers_by_nic() const override { return {}; }
  std::map<NicId, NicAccount> nic_accounts(Instant) const override { return accounts_; }
  std::vector<LinkHealth> link_health(Instant) const override { return {}; }
  std::optional<std::pair<NicId, NicId>> cut_off(const std::vector<NicId>&) const override { return std::nullopt; }
  std::optional<std::pair<NicId, std::string>> drained(const std::vector<NicId>&) const override {
    return std::nullopt;
  }
  void observe(NetworkObserver*) override {}

  void cut(NicId nic) { cut_.insert(nic); }

  enum class Fate : std::uint8_t { arrives, unanswered, lost };
  struct Submission {
    Instant at;
    Transfer transfer;
    Fate fate = Fate::arrives;
  };
  std::vector<Submission> submitted;
  std::function<Duration(std::uint64_t)> unordered_flight;
  std::function<Fate(const Transfer&)> fate;  // the source hears of a failure when it would have heard of success
  Duration acknowledgement_time{700'000};
  std::uint64_t in_flight = 0;

 private:
  enum Step : std::uint64_t { arrival, acknowledgement, departure };
  static std::uint64_t key(std::uint64_t index, Step step) { return index << 2 | step; }

  // A transfer is one piece, which waits for the bus.
  void depart(std::uint64_t index) {
    const Transfer& transfer = submitted[index].transfer;
    if (bus_ != nullptr) {
      const Instant start = bus_->may_send(transfer.source);
      if (start > engine_.now()) return engine_.schedule(start, key(index, departure));
      bus_->sends(transfer.source, transfer.source_memory, transfer.size, engine_.now());
    }
    const Duration flight = unordered_flight && !transfer.ordered ? unordered_flight(index) : Duration{1'000'000};
    engine_.schedule(engine_.now() + flight, key(index, arrival));
    engine_.schedule(engine_.now() + flight + acknowledgement_time, key(index, acknowledgement));
  }
  Fate fate_of(const Transfer& transfer) const {
    if (cut_.contains(transfer.source) || cut_.contains(transfer.target)) return Fate::lost;
    return fate ? fate(transfer) : Fate::arrives;
  }
  void handle(Event event) override {
    const std::uint64_t index = event.key >> 2;
    const auto step = static_cast<Step>(event.key & 3);
    if (step == departure) return depart(index);
    --in_flight;
    const Submission submission = submitted[index];
    const Transfer& transfer = submission.transfer;
    if (step == arrival) {
      if (submission.fate == Fate::lost) return;
      count(transfer);
      if (bus_ != nullptr) bus_->took(transfer.target, transfer.target_memory, transfer.size, engine_.now());
      return sink_->delivered(transfer.handle, hops_of(transfer));
    }
    if (submission.fate == Fate::arrives) return sink_->acknowledged(transfer.handle);
    NicAccount& account = accounts_[transfer.source];
    (transfer.ordered ? account.timeouts.ordered : account.timeouts.unordered) += 2;
    totals_.faults.network_timeouts += 2;
    ++account.sent_again;
    ++totals_.faults.pieces_sent_again;
    ++(transfer.ordered ? account.ordered_given_up : account.unordered_given_up);
    if (transfer.ordered) ++account.flows_given_up;
    ++totals_.faults.transfers_failed;
    sink_->failed(transfer.handle, submission.fate == Fate::unanswered);
  }
  void count(const Transfer& transfer) {
    const auto traffic_class = static_cast<std::size_t>(transfer.traffic_class);
    ++totals_.pieces;
    if (transfer.source != transfer.target) totals_.piece_hops += hops + 2;
    totals_.payload_bytes += transfer.size.count;
    ++totals_.pieces_of[traffic_class];
    totals_.bytes_of[traffic_class] += transfer.size.count;
  }

  static constexpr std::uint32_t hops = 3;
  static std::uint32_t hops_of(const Transfer& transfer) { return transfer.source == transfer.target ? 0 : hops; }

  Engine& engine_;
  TransferSink* sink_ = nullptr;
  HostBus* bus_ = nullptr;
  std::set<NicId> cut_;
  NetworkTotals totals_;
  std::map<NicId, NicAccount> accounts_;
};

}  // namespace dryfly
