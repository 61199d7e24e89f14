#include "core/nic/portal.hpp"

#include <algorithm>

#include "core/unit/check.hpp"

namespace dryfly::nic {

namespace {
// Events are acknowledged in batches; of a queue this large an eighth at a time, because the rest cannot matter.
constexpr std::uint32_t large_queue = 16'384;
// Appends between two looks at the pool, in hybrid mode with FI_CXI_HYBRID_RECV_PREEMPTIVE.
constexpr std::uint32_t pool_check_interval = 64;
}  // namespace

bool BufferList::take(Bytes bytes) {
  DRYFLY_CHECK(posted_ > 0);
  left_ = left_ - std::min(left_, bytes);
  if (left_ >= largest_) return false;
  --posted_;
  left_ = size_;
  return true;
}

void BufferList::replenish(EntryPool& pool) {
  if (posted_ == 0) left_ = size_;
  while (posted_ < wanted_ && pool.take()) ++posted_;
}

void BufferList::remove_all(EntryPool& pool) {
  for (; posted_ > 0; --posted_) pool.give_back();
}

void Portal::open(const EndpointSettings& settings, Bytes eager_max, Bytes header, EntryPool& pool,
                  MatchingTotals& totals) {
  *this = Portal{};
  settings_ = settings;
  pool_ = &pool;
  totals_ = &totals;
  header_ = header;
  overflow_.open(settings.overflow_buffer, eager_max, settings.overflow_buffers);
  requests_.open(settings.request_buffer, eager_max, settings.request_buffers);
  report_every_ = settings.event_slots >= large_queue ? settings.event_slots / 8 : settings.event_batch;
  const bool software = settings.match_mode == MatchMode::software;
  state_ = resumes_as_ = software ? State::software : State::enabled;
  // A hybrid end-point has its request buffers from the start, because the hardware may turn to them at any time.
  if (!software) replenish();
  if (settings.match_mode != MatchMode::hardware) requests_.replenish(pool);
}

void Portal::close() {
  overflow_.remove_all(*pool_);
  requests_.remove_all(*pool_);
  wanted_.clear();
}

Portal::Admission Portal::admit(bool by_entry, bool by_receive, Bytes bytes) {
  if (refuses()) return Admission::refused;
  if (used_slots_ >= settings_.event_slots) return refuse(&MatchingTotals::events_full, false);
  if (by_entry) {
    add_events(1);
    return Admission::hardware;
  }
  if (in_software()) return admit_to_software(bytes);
  // A receive without an entry belongs to software or to flow control, and the portal is in neither.
  DRYFLY_CHECK(!by_receive);
  if (overflow_.empty()) return without_buffer(&MatchingTotals::no_overflow_buffer);
  if (!pool_->take()) {
    if (settings_.match_mode != MatchMode::hybrid) return refuse(&MatchingTotals::unexpected_failed, true);
    hand_over(&MatchingTotals::software_by_unexpected);
    return admit_to_software(bytes);
  }
  fill(overflow_, bytes);
  add_events(1);
  return Admission::unexpected;
}

Portal::Admission Portal::admit_to_software(Bytes bytes) {
  if (requests_.empty()) return without_buffer(&MatchingTotals::request_full);
  fill(requests_, bytes + header_);
  add_events(1);
  return Admission::software;
}

void Portal::fill(BufferList& buffers, Bytes bytes) {
  if (!buffers.take(bytes)) return;
  pool_->give_back();
  ask(WorkKind::replenish);
}

Portal::Append Portal::append() {
  if (in_software() || resumes_as_ == State::software) return Append::software;
  const bool hybrid = settings_.match_mode == MatchMode::hybrid;
  const bool looks = hybrid && settings_.preempt_on_pool && ++appends_ % pool_check_interval == 0;
  if (looks && !refuses() && pool_->in_use() > pool_->capacity() / 2) {
    hand_over(&MatchingTotals::software_by_choice);
    return Append::software;
  }
  if (pool_->take()) return Append::entry;
  if (hybrid) {
    hand_over(&MatchingTotals::software_by_append);
    return Append::software;
  }
  if (state_ == State::draining) return Append::waits;  // the CPU knows, and does not even try
  // A failed append is an event, and nobody has kept a slot for it.
  if (used_slots_ >= settings_.event_slots && !overflowed_) {
    overflowed_ = true;
    ask(WorkKind::fatal_events);
  }
  add_events(1);
  if (!refuses()) begin_flow_control(&MatchingTotals::append_failed, true);
  return Append::waits;
}

void Portal::posted(std::size_t receives) {
  totals_->priority_list_max = std::max<std::uint64_t>(totals_->priority_list_max, receives);
  totals_->engine_entries_max = std::max<std::uint64_t>(totals_->engine_entries_max, pool_->in_use());
  const bool hybrid = settings_.match_mode == MatchMode::hybrid && state_ == State::enabled;
  if (hybrid && settings_.preempt_on_posted && receives > settings_.receive_size) {
    hand_over(&MatchingTotals::software_by_choice);
  }
}

void Portal::waiting(std::size_t unexpected) {
  std::uint64_t& most = in_software() ? totals_->request_list_max : totals_->overflow_list_max;
  most = std::max<std::uint64_t>(most, unexpected);
  totals_->engine_entries_max = std::max<std::uint64_t>(totals_->engine_entries_max, pool_->in_use());
  const bool hybrid = settings_.match_mode == MatchMode::hybrid && state_ == State::enabled;
  if (hybrid && settings_.preempt_on_unexpected && unexpected > settings_.receive_size) {
    hand_over(&MatchingTotals::software_by_choice);
  }
}

Portal::Admission Portal::refuse(std::uint64_t MatchingTotals::* reason, bool needs_entries) {
  begin_flow_control(reason, needs_entries);
  return Admission::refused;
}

Portal::Admission Portal::without_buffer(std::uint64_t MatchingTotals::* reason) {
  return settings_.lossless ? Admission::paused : refuse(reason, false);
}

void Portal::begin_flow_control(std::uint64_t MatchingTotals::* reason, bool needs_entries) {
  ++(totals_->*reason);
  state_ = State::disabled;
  needs_entries_ = needs_entries;
  ask(WorkKind::onload);
}

// In the middle of flow control it only decides as what the portal is enabled again.
void Portal::hand_over(std::uint64_t MatchingTotals::* reason) {
  ++(totals_->*reason);
  resumes_as_ = State::software;
  if (refuses()) return;
  state_ = State::to_software;
  ask(WorkKind::onload);
}

void Portal::become_software() {
  state_ = State::software;
  overflow_.remove_all(*pool_);
  requests_.replenish(*pool_);
}

bool Portal::onloaded(std::uint32_t headers) {
  totals_->headers_onloaded += headers;
  if (state_ == State::to_software) {
    become_software();
    return true;
  }
  if (state_ != State::disabled) return true;  // asked for twice: on the way to software, then by a full request list
  used_slots_ = 0;                             // the CPU has come past everything before the disabling
  if (needs_entries_ && headers == 0) return false;
  state_ = State::draining;
  replenish();
  return true;
}

bool Portal::enable() {
  if (state_ != State::draining || told_ != dropped_) return false;
  told_ = dropped_ = 0;
  if (resumes_as_ == State::software) {
    become_software();
  } else {
    state_ = State::enabled;
  }
  if (fails_again_) {
    fails_again_ = false;
    begin_flow_control(&MatchingTotals::append_failed, true);
  }
  return true;
}

void Portal::restart() {
  used_slots_ = unreported_ = appends_ = 0;
  overflow_.restart();
  requests_.restart();
}

void Portal::replenish() {
  if (resumes_as_ == State::software || in_software()) {
    requests_.replenish(*pool_);
  } else {
    overflow_.replenish(*pool_);
    if (!settings_.preempt_on_overflow || settings_.match_mode != MatchMode::hybrid || refuses()) return;
    if (pool_->in_use() > pool_->capacity() / 2) hand_over(&MatchingTotals::software_by_choice);
  }
}

void Portal::add_events(std::uint32_t events) {
  used_slots_ += events;
  unreported_ += events;
  if (unreported_ < report_every_) return;
  ask(WorkKind::drain, unreported_);
  unreported_ = 0;
}

std::optional<Work> Portal::next_work() {
  if (wanted_.empty()) return std::nullopt;
  const Work work = wanted_.front();
  wanted_.pop_front();
  return work;
}

}  // namespace dryfly::nic
