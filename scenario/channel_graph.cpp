// Shows that the fabric of a machine cannot deadlock: channel-graph SPEC walks ways that the routing algorithms choose
// on it under random loads, notes which buffer a packet holds while it waits for which, and looks for a circle. A
// buffer is the virtual channel of a link; links towards a NIC wait for nothing. Classes have the same graph each.
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/network/packet/link_loads.hpp"
#include "core/route/algorithms.hpp"

namespace dryfly::fabric {
namespace {

constexpr std::uint32_t packets = 150'000;

class ChannelGraph {
 public:
  explicit ChannelGraph(const Dragonfly& dragonfly) : dragonfly_(dragonfly) {}

  void walk(const Path& path, SwitchId at) {
    std::uint64_t held = name(dragonfly_.port_count(), 0);  // the link from a NIC; one node stands for all
    for (std::uint32_t hop = 0; hop < path.switch_hops; ++hop) {
      DRYFLY_CHECK(channel_out(hop) < channel_count && channel_in(hop + 1) == channel_out(hop));
      const Peer& peer = dragonfly_.peer(at, path.ports[hop]);
      DRYFLY_CHECK(peer.kind == Peer::Kind::local_switch || peer.kind == Peer::Kind::global_switch);
      const std::uint64_t wanted = name(dragonfly_.first_port(at) + path.ports[hop], channel_out(hop));
      if (waits_for_[held].insert(wanted).second) ++incoming_[wanted];
      waits_for_[wanted];
      held = wanted;
      at = {peer.id};
    }
  }
  std::size_t size() const { return waits_for_.size(); }

  // Takes away what nothing waits for, until nothing is left (Kahn).
  bool is_acyclic() {
    std::vector<std::uint64_t> removable;
    for (const auto& [buffer, next] : waits_for_) {
      if (incoming_.count(buffer) == 0) removable.push_back(buffer);
    }
    std::size_t removed = 0;
    while (!removable.empty()) {
      const std::uint64_t buffer = removable.back();
      removable.pop_back();
      ++removed;
      for (const std::uint64_t wanted : waits_for_[buffer]) {
        if (--incoming_[wanted] == 0) removable.push_back(wanted);
      }
    }
    return removed == waits_for_.size();
  }

 private:
  static std::uint64_t name(std::uint32_t port, std::uint32_t channel) {
    return std::uint64_t{port} * channel_count + channel;
  }
  const Dragonfly& dragonfly_;
  std::unordered_map<std::uint64_t, std::unordered_set<std::uint64_t>> waits_for_;
  std::unordered_map<std::uint64_t, std::size_t> incoming_;
};

// As a switch lays it, with the decision at the third group.
Path draw(const Dragonfly& dragonfly, const Routing& routing, const Links& links, NicId source, NicId target,
          std::uint32_t word) {
  Path path;
  SwitchId here = dragonfly.switch_of(source);
  while (path.decide_at != decided) {
    const RouteQuery query{here, dragonfly.switch_of(target), dragonfly.port_of(target)};
    Way way;
    way.via = query.target;
    PacketDraws draws{word, path.decide_at};
    const bool first = path.decide_at == 0;
    if (query.source != query.target) {
      way = first ? routing.choose(query, draws, LinkLoads{links}) : routing.go_on(query, draws, LinkLoads{links});
    }
    const std::uint32_t laid = path.switch_hops;
    lay(path, dragonfly, here, query.target, query.target_port, way);
    for (std::uint32_t hop = laid; hop < path.switch_hops; ++hop) here = {dragonfly.peer(here, path.ports[hop]).id};
  }
  return path;
}

int run(const char* spec_path) {
  std::ifstream file{spec_path};
  std::stringstream text;
  text << file.rdbuf();
  const Spec spec = Spec::parse(text.str());
  const Dragonfly dragonfly{spec};
  Engine engine;
  const FabricSpec fabric = FabricSpec::read(spec);
  Links links{engine, dragonfly, fabric, spec};
  const RandomStream random{1, 0, Purpose::test};
  std::uint64_t draws = 0;
  for (std::uint32_t port = 0; port < dragonfly.port_count(); ++port) {
    links[port].busy_until_ps = random.below(draws++, 2'000'000);  // up to 24 packets: detours are wanted
  }
  ChannelGraph graph{dragonfly};
  std::uint32_t longest = 0;
  for (const Algorithm& algorithm : algorithms) {
    const std::unique_ptr<Routing> routing = algorithm.make(spec, dragonfly);
    for (std::uint32_t i = 0; i < packets; ++i) {
      const NicId source{random.below(draws++, dragonfly.nic_count())};
      const NicId target{random.below(draws++, dragonfly.nic_count())};
      const auto word = static_cast<std::uint32_t>(random.draw(draws++));
      const Path path = draw(dragonfly, *routing, links, source, target, word);
      longest = std::max<std::uint32_t>(longest, path.switch_hops);
      graph.walk(path, dragonfly.switch_of(source));
    }
  }
  const bool acyclic = graph.is_acyclic();
  std::printf("buffers %zu\nlongest_way %u\nacyclic %d\n", graph.size(), longest, acyclic ? 1 : 0);
  return acyclic ? 0 : 1;
}

}  // namespace
}  // namespace dryfly::fabric

int main(int argc, char** argv) {
  if (argc == 2) return dryfly::fabric::run(argv[1]);
  std::fprintf(stderr, "usage: channel-graph SPEC\n");
  return 2;
}
