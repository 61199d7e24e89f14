#include "provider/peer_copies.hpp"

#include <stdlib.h>

namespace dryfly::provider {

void PeerCopies::open(const wire::RegistrationCosts& costs, const RegistrationSettings& settings) {
  if (!settings.attaches || costs.page_bytes == 0) return;
  costs_ = &costs;
  settings_ = &settings;
}

void PeerCopies::close() {
  while (targets_ != nullptr) {
    OfTarget* next = targets_->next;
    if (are_attached()) targets_->attached.close();
    free(targets_);
    targets_ = next;
  }
}

// Without memory for a cache nothing is attached yet, each time.
std::uint64_t PeerCopies::attach(std::uint32_t target, const void* buffer, std::size_t length) {
  OfTarget* its = of(target);
  if (its == nullptr) return costs_->map_ps;
  wire::RegistrationCounts counts{};
  return its->attached.use(reinterpret_cast<std::uint64_t>(buffer), length, counts);
}

std::optional<std::uint64_t> PeerCopies::copy(std::uint32_t target, const void* buffer, std::size_t length,
                                              std::uint64_t version, std::uint64_t room) {
  OfTarget* its = of(target);
  if (its == nullptr) return std::nullopt;
  const bool may_stay = length <= room;
  return its->kept.copy({.owner = 0,
                         .begin = reinterpret_cast<std::uint64_t>(buffer),
                         .count = length,
                         .contents = may_stay ? fingerprint_of(buffer, length, version) : 0},
                        room);
}

PeerCopies::OfTarget* PeerCopies::of(std::uint32_t target) {
  OfTarget* found = targets_;
  while (found != nullptr && found->target != target) found = found->next;
  if (found != nullptr) return found;
  found = static_cast<OfTarget*>(calloc(1, sizeof *found));
  if (found == nullptr) return nullptr;
  found->target = target;
  found->next = targets_;
  if (are_attached()) found->attached.open(*costs_, *settings_, false);
  targets_ = found;
  return found;
}

}  // namespace dryfly::provider
