#include "rank/baton.hpp"

namespace dryfly::rank {

void Baton::ask_again() {
  const CallMode mode = self_->mode();
  const bool has_baton = mode == CallMode::blocking || mode == CallMode::testing;
  if (has_baton && !self_->has_threads()) gate_.stop(wire::GateKind::baton, 0);
}

void Baton::give_back() {
  page_->baton_end.at_ps = self_->now();
  page_->baton_end.count.fetch_add(1, std::memory_order_seq_cst);
  page_->clock_ps.store(self_->now(), std::memory_order_seq_cst);
  attention_.raise();
}

}  // namespace dryfly::rank
