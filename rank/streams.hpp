// Streams of a GPU beside their process: they write to counters of NICs and wait for memory that NICs write, at
// instants of their own, whatever the process does. So before its clock goes on, whatever they do up to there is done,
// and where one waits, the rank stops for what NICs tell of memory (wire::News).
//
// Left out: ranks that talk through the memory of their node and take turns (Baton); there the streams go on where the
// rank stops next, and may be late.
#pragma once

#include <cstdint>

#include "rank/attachment.hpp"
#include "rank/gate.hpp"
#include "rank/self.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

class Streams {
 public:
  Streams(const Attachment& attachment, Self* self, Gate& gate)
      : page_(attachment.page), has_batons_(attachment.header->nodes_share_memory != 0), self_(self), gate_(gate) {}

  // What the provider does, and with a counter's value that its NIC has written back.
  void serve_by(const StreamServing& serving, bool (*written_back)(const wire::News&)) {
    self_->serving = serving;
    written_back_ = written_back;
  }
  const StreamServing& serving() const { return self_->serving; }
  // A counter has a doorbell, which the program may write to at any time, or a buffer.
  void begin() { self_->serves.store(1, std::memory_order_relaxed); }

  // A counter's value will be written to memory that the program and its GPU's work may write to as well.
  void expect() {
    ++expected_;
    heeds_news_ = true;
  }
  void expect_no_more() { --expected_; }
  void heed_news() { heeds_news_ = true; }
  bool are_active() const { return (device() != nullptr || expected_ != 0) && !is_serving_; }
  std::uint64_t next_ps() const { return device() != nullptr ? device()->next_ps() : wire::far_future; }
  // What they do up to that instant.
  void serve(std::uint64_t until_ps);
  // And what they do next, to which the clock goes; false: they never will.
  bool serve_next();

  // The process itself has changed what is there.
  void tell(std::uint64_t address, std::uint64_t value, std::uint32_t bytes) {
    if (device() != nullptr) device()->written(address, value, bytes, self_->now());
  }
  // What is there and has come.
  void take_visible() {
    for (const wire::News* news = oldest(); news != nullptr && news->at_ps <= self_->now(); news = oldest()) take();
  }

  // The oldest that was not taken, or null. It may lie in the rank's future.
  const wire::News* oldest() const;
  void take();
  void act(std::uint64_t at_ps);

 private:
  const DeviceStreams* device() const { return self_->streams.load(std::memory_order_relaxed); }
  const wire::News* await_news(std::uint64_t until_ps);
  bool needs_news(bool acts) const;
  void serve_each(std::uint64_t until_ps);

  wire::RankPage* page_;
  bool has_batons_;
  Self* self_;
  Gate& gate_;
  bool (*written_back_)(const wire::News&) = nullptr;  // true: the first value of a counter
  std::uint32_t expected_ = 0;                         // first values of counters that have not come yet
  bool heeds_news_ = false;                            // some may come while no stream waits
  bool is_serving_ = false;
};

}  // namespace dryfly::rank
