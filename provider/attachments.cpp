#include "provider/attachments.hpp"

#include <stdlib.h>

namespace dryfly::provider {

void Attachments::open(const wire::RegistrationCosts& costs, const RegistrationSettings& settings) {
  if (!settings.attaches || costs.page_bytes == 0) return;
  costs_ = &costs;
  settings_ = &settings;
}

void Attachments::close() {
  while (targets_ != nullptr) {
    OfTarget* next = targets_->next;
    targets_->ranges.close();
    free(targets_);
    targets_ = next;
  }
}

// Without memory for a cache nothing is attached yet, each time.
std::uint64_t Attachments::attach(std::uint32_t target, const void* buffer, std::size_t length) {
  OfTarget* of = targets_;
  while (of != nullptr && of->target != target) of = of->next;
  if (of == nullptr) {
    of = static_cast<OfTarget*>(calloc(1, sizeof *of));
    if (of == nullptr) return costs_->map_ps;
    of->target = target;
    of->next = targets_;
    of->ranges.open(*costs_, *settings_, false);
    targets_ = of;
  }
  wire::RegistrationCounts counts{};
  return of->ranges.use(reinterpret_cast<std::uint64_t>(buffer), length, counts);
}

}  // namespace dryfly::provider
