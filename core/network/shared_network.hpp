// One network for several submitters, such as a job and traffic beside it: all of them submit to the same NIC ports,
// and each is told of its own transfers only. Nobody below knows that there are several.
//
// A share knows how much of its own is under way, which the others' transfers do not hide, and can stop the engine when
// that is nothing: where others never come to rest, an empty event queue tells nobody that a job has.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/unit/pool.hpp"

namespace dryfly {

class SharedNetwork final : private TransferSink {
 public:
  // What one submitter has of the network.
  class Share final : public Carrier {
   public:
    Share(SharedNetwork& all, std::uint32_t number) : all_(all), number_(number) {}
    void connect(TransferSink& sink) override {
      DRYFLY_CHECK(sink_ == nullptr);
      sink_ = &sink;
    }
    // One for all shares, who all pass by it.
    void attach(HostBus& bus) override { all_.below_.attach(bus); }
    void submit(const Transfer& transfer) override {
      ++under_way_;
      ++submissions_;
      all_.submit(number_, transfer);
    }

    bool takes_ordered() const override { return all_.below_.takes_ordered(); }

    // Transfers that are neither acknowledged nor given up; those that there have been.
    std::uint64_t under_way() const { return under_way_; }
    std::uint64_t submissions() const { return submissions_; }
    // The engine's run under way stops when this share has none left, and before anything that comes later.
    void stop_engine_when_idle(bool stops) { stops_engine_ = stops; }
    bool stops_engine_when_idle() const { return stops_engine_; }

   private:
    friend class SharedNetwork;

    SharedNetwork& all_;
    std::uint32_t number_;
    TransferSink* sink_ = nullptr;
    std::uint64_t under_way_ = 0;
    std::uint64_t submissions_ = 0;
    bool stops_engine_ = false;
  };

  // Connects itself to the network, which must outlive it.
  SharedNetwork(Engine& engine, Carrier& below) : engine_(engine), below_(below) { below_.connect(*this); }
  SharedNetwork(const SharedNetwork&) = delete;
  SharedNetwork& operator=(const SharedNetwork&) = delete;

  // Lives as long as this does.
  Share& open_share() {
    shares_.push_back(std::make_unique<Share>(*this, static_cast<std::uint32_t>(shares_.size())));
    return *shares_.back();
  }

 private:
  struct Submitted {
    std::uint32_t share = 0;
    std::uint32_t handle = 0;  // its submitter's
  };

  void submit(std::uint32_t share, Transfer transfer) {
    const std::uint32_t number = submitted_.acquire();
    submitted_[number] = {.share = share, .handle = transfer.handle};
    transfer.handle = number;
    below_.submit(transfer);
  }

  void delivered(std::uint32_t number, std::uint32_t switch_hops) override {
    const Submitted transfer = submitted_[number];
    shares_[transfer.share]->sink_->delivered(transfer.handle, switch_hops);
  }
  void acknowledged(std::uint32_t number) override {
    const Submitted transfer = end(number);
    shares_[transfer.share]->sink_->acknowledged(transfer.handle);
  }
  void failed(std::uint32_t number, bool delivered) override {
    const Submitted transfer = end(number);
    shares_[transfer.share]->sink_->failed(transfer.handle, delivered);
  }
  Submitted end(std::uint32_t number) {
    const Submitted transfer = submitted_[number];
    submitted_.release(number);
    Share& share = *shares_[transfer.share];
    if (--share.under_way_ == 0 && share.stops_engine_) engine_.lower_limit(Instant{engine_.now().ps + 1});
    return transfer;
  }

  Engine& engine_;
  Carrier& below_;
  std::vector<std::unique_ptr<Share>> shares_;
  Pool<Submitted> submitted_;
};

}  // namespace dryfly
