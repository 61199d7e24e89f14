#include "core/motif/cores.hpp"

#include <map>

#include "core/host/noise_settings.hpp"

namespace dryfly::generator {

Cores::Cores(const Stand& stand, const std::vector<NicId>& ranks)
    : settings_(read_noise(stand.spec())), noises_(ranks.size()), taken_(ranks.size()) {
  std::map<std::uint32_t, std::uint32_t> ranks_on_node;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::uint32_t node = stand.topology().node_of(ranks[rank]).value;
    noises_[rank].begin(settings_, node, ranks_on_node[node]++, 0, taken_[rank]);
  }
}

}  // namespace dryfly::generator
