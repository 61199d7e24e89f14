#include "rank/streams.hpp"

namespace dryfly::rank {

using namespace wire;

const News* Streams::oldest() const {
  const std::uint64_t tail = page_->news.tail.load(std::memory_order_relaxed);
  if (tail == page_->news.head.load(std::memory_order_acquire)) return nullptr;
  return &page_->news.news[tail % NewsRing::most];
}

void Streams::take() {
  const News news = *oldest();
  page_->news.tail.store(page_->news.tail.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  gate_.acted_at(news.at_ps);
  if (news.counter != 0 && written_back_ != nullptr && written_back_(news)) --expected_;
  if (device() != nullptr) device()->written(news.address, news.value, news.bytes, news.at_ps);
}

void Streams::act(std::uint64_t at_ps) {
  gate_.acted_at(at_ps);
  device()->act(at_ps);
}

// Without a stream that waits nobody asks what has come, but what the GPU moves must not pass it: a counter's value is
// put into memory by this process itself.
bool Streams::needs_news(bool acts) const {
  if (device() == nullptr) return expected_ != 0;
  return device()->wait() || (acts && heeds_news_);
}

// The oldest up to that instant, or null: there is certainly none.
const News* Streams::await_news(std::uint64_t until_ps) {
  const News* news = oldest();
  const bool is_certain = page_->horizon_ps.load(std::memory_order_acquire) >= until_ps;
  if (news == nullptr && !is_certain && !has_batons_) gate_.stop(GateKind::news, until_ps);
  news = oldest();
  return news != nullptr && news->at_ps <= until_ps ? news : nullptr;
}

void Streams::serve_each(std::uint64_t until_ps) {
  for (;;) {
    const std::uint64_t next = next_ps();
    const bool acts = next <= until_ps;
    if (needs_news(acts) && await_news(acts ? next : until_ps) != nullptr) {
      take();
    } else if (acts) {
      act(next);
    } else {
      return;
    }
  }
}

void Streams::serve(std::uint64_t until_ps) {
  if (!are_active() || self_->mode() == CallMode::outside) return;
  is_serving_ = true;
  serve_each(until_ps);
  is_serving_ = false;
}

bool Streams::serve_next() {
  if (!are_active()) return false;
  is_serving_ = true;
  const std::uint64_t next = next_ps();
  const News* const news = await_news(next);
  const std::uint64_t at = news != nullptr ? news->at_ps : next;
  if (at != far_future) {
    if (at > self_->now()) self_->set_clock(at);
    if (news != nullptr) {
      take();
    } else {
      act(next);
    }
    gate_.publish();
  }
  is_serving_ = false;
  return at != far_future;
}

}  // namespace dryfly::rank
