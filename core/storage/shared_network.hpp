// One network for the job and for traffic beside it: each submits to the same NIC ports, and each is told of its own
// transfers only. It knows how much of the job's is under way, which the background's does not hide.
#pragma once

#include <cstdint>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"

namespace dryfly::storage {

class SharedNetwork final : public Network, private TransferSink {
 public:
  SharedNetwork(Engine& engine, Network& below, TransferSink& background)
      : engine_(engine), below_(below), background_(background) {}

  // The job's side. Its handles never have all the bits of background_mark set.
  void connect(TransferSink& job) override {
    job_ = &job;
    below_.connect(*this);
  }
  void submit(const Transfer& transfer) override {
    DRYFLY_CHECK((transfer.handle & background_mark) != background_mark);
    ++job_transfers_;
    ++job_submissions_;
    below_.submit(transfer);
  }
  NetworkTotals totals() const override { return below_.totals(); }
  bool at_rest() const override { return below_.at_rest(); }

  // The other side; `handle` counts as it comes back.
  void submit_background(Transfer transfer) {
    transfer.handle = transfer.handle << background_bits | background_mark;
    below_.submit(transfer);
  }

  // Transfers of the job that are neither acknowledged nor given up; those that there have been.
  std::uint64_t job_transfers() const { return job_transfers_; }
  std::uint64_t job_submissions() const { return job_submissions_; }
  // The engine's run under way stops when the job has none left, and before anything that comes later.
  void stop_without_job(bool stops) { stops_ = stops; }
  bool stops_without_job() const { return stops_; }

 private:
  static bool is_background(std::uint32_t handle) { return (handle & background_mark) == background_mark; }

  void delivered(std::uint32_t handle, std::uint32_t switch_hops) override {
    if (is_background(handle)) return background_.delivered(handle >> background_bits, switch_hops);
    job_->delivered(handle, switch_hops);
  }
  void acknowledged(std::uint32_t handle) override {
    if (is_background(handle)) return background_.acknowledged(handle >> background_bits);
    end_of_job_transfer();
    job_->acknowledged(handle);
  }
  void failed(std::uint32_t handle, bool delivered) override {
    if (is_background(handle)) return background_.failed(handle >> background_bits, delivered);
    end_of_job_transfer();
    job_->failed(handle, delivered);
  }
  void end_of_job_transfer() {
    if (--job_transfers_ == 0 && stops_) engine_.lower_limit(Instant{engine_.now().ps + 1});
  }

  Engine& engine_;
  Network& below_;
  TransferSink& background_;
  TransferSink* job_ = nullptr;
  std::uint64_t job_transfers_ = 0;
  std::uint64_t job_submissions_ = 0;
  bool stops_ = false;
};

}  // namespace dryfly::storage
