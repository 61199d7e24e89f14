#include "conductor/headway.hpp"

#include <algorithm>
#include <string>

namespace dryfly {

void Headway::read_clock(Instant reached) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (now - said_ < 1s) return;
  said_ = now;
  status_.say("reached " + std::to_string(std::max(reached, start_).ps - start_.ps));
}

}  // namespace dryfly
