#include "core/nic/reductions.hpp"

#include <algorithm>

namespace dryfly::nic {

namespace {

// How many numbers a group has for its reductions.
constexpr std::uint32_t concurrent = 8;

}  // namespace

std::uint32_t Reductions::open(const GroupTree& tree) {
  DRYFLY_CHECK(tree.root < tree.members.size() && tree.parents.size() == tree.members.size());
  Group group;
  group.tree = tree;
  group.children.resize(tree.members.size());
  for (std::uint32_t place = 0; place < tree.members.size(); ++place) {
    DRYFLY_CHECK((place == tree.root) == (tree.parents[place] == place));
    if (place != tree.root) group.children[tree.parents[place]].push_back(place);
  }
  group.armed_until.resize(concurrent);
  group.told.resize(tree.members.size());
  groups_.push_back(std::move(group));
  ++totals_.groups;
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

// What is under way of it goes on.
void Reductions::close(std::uint32_t index) { groups_[index].broken = true; }

void Reductions::restart() {
  legs_.restart();
  totals_ = {};
}

CollectiveTotals Reductions::totals() const {
  CollectiveTotals totals = totals_;
  totals.packets = legs_.packets();
  return totals;
}

Leg Reductions::leg(LegKind kind, std::uint32_t reduction, std::uint32_t place) const {
  return {.kind = kind, .owner = reduction, .life = reductions_[reduction].life, .place = place};
}

void Reductions::hold(LegKind kind, std::uint32_t reduction, std::uint32_t place, Duration time) {
  legs_.hold(leg(kind, reduction, place), time);
}

// By the NIC itself.
void Reductions::send(LegKind kind, std::uint32_t reduction, std::uint32_t from, std::uint32_t to) {
  const std::vector<EndpointId>& members = groups_[reductions_[reduction].group].tree.members;
  legs_.send(leg(kind, reduction, to), members[from], members[to]);
}

void Reductions::arrived(Parcel parcel) {
  const Leg leg = legs_.arrived(parcel);
  if (leg.of_join()) return joins_.arrived(leg);
  if (reductions_[leg.owner].life == leg.life) go_on(leg);
}

void Reductions::failed(Parcel parcel, bool delivered) {
  const Leg leg = legs_.lost(parcel);
  if (delivered) return;
  if (leg.of_join()) return joins_.lost(leg);
  if (reductions_[leg.owner].life == leg.life) fail(leg.owner);
}

void Reductions::go_on(const Leg& leg) {
  switch (leg.kind) {
    case LegKind::part:
      return hold(LegKind::combined, leg.owner, leg.place, spec_.reduction_latency);
    case LegKind::combined:
      return part_came(leg.owner, leg.place, false);
    case LegKind::launch_arm:
      return send_down(leg.owner, leg.place, LegKind::arm);
    case LegKind::launch_result:
      return send_down(leg.owner, leg.place, LegKind::result);
    case LegKind::arm:
      hold(LegKind::armed, leg.owner, leg.place, spec_.ingress_latency);
      return send_down(leg.owner, leg.place, LegKind::arm);
    case LegKind::result:
      hold(LegKind::landed, leg.owner, leg.place, spec_.ingress_latency);
      return send_down(leg.owner, leg.place, LegKind::result);
    case LegKind::armed:
      return armed(leg.owner, leg.place);
    case LegKind::landed:
      return landed(leg.owner, leg.place);
    default:
      DRYFLY_UNREACHABLE("a leg of a reduction");
  }
}

std::uint32_t Reductions::begin(std::uint32_t group_index, std::uint64_t sequence) {
  Group& group = groups_[group_index];
  const auto [found, is_new] = group.under_way.try_emplace(sequence);
  if (!is_new) return found->second;
  const std::uint32_t index = found->second = reductions_.acquire();
  Reduction& reduction = reductions_[index];
  reduction.group = group_index;
  reduction.life = ++lives_;
  reduction.sequence = sequence;
  reduction.unfinished = static_cast<std::uint32_t>(group.tree.members.size());
  reduction.needs_arming = group.armed_until[sequence % concurrent] <= engine_.now();
  if (reduction.needs_arming) ++totals_.armings;
  reduction.places.resize(group.tree.members.size());
  for (std::uint32_t place = 0; place < reduction.places.size(); ++place) {
    reduction.places[place].missing = static_cast<std::uint32_t>(group.children[place].size()) + 1;
  }
  return index;
}

void Reductions::contribute(const ContributeCommand& command) {
  Group& group = groups_[command.group];
  DRYFLY_CHECK(command.member < group.tree.members.size());
  if (group.broken) return host_.reduced(group.tree.members[command.member], command.token, error_unreachable);
  DRYFLY_CHECK(command.sequence >= group.told[command.member]);
  const std::uint32_t index = begin(command.group, command.sequence);
  Reduction& reduction = reductions_[index];
  Place& place = reduction.places[command.member];
  DRYFLY_CHECK(!place.contributed);
  place.contributed = true;
  place.token = command.token;
  place.by_dma = command.by_dma;
  NicCounters& counters = transport_.counters_of(group.tree.members[command.member]);
  command.by_dma ? counters.add_dma(DmaCommand::reduction) : counters.add(Counter::cq_num_idc_cmds);
  const bool is_root = command.member == group.tree.root;
  place.held = reduction.needs_arming && !place.armed && !is_root;
  if (place.held) return;
  if (is_root && reduction.needs_arming) hold(LegKind::launch_arm, index, command.member, spec_.egress_latency);
  give_part(index, command.member);
}

void Reductions::give_part(std::uint32_t index, std::uint32_t place) { part_came(index, place, true); }

// The engine at this place has one more; `by_command`: the part of the place itself, which comes out of its NIC.
void Reductions::part_came(std::uint32_t index, std::uint32_t place, bool by_command) {
  Reduction& reduction = reductions_[index];
  const GroupTree& tree = groups_[reduction.group].tree;
  DRYFLY_CHECK(reduction.places[place].missing > 0);
  if (--reduction.places[place].missing > 0) return;
  if (place == tree.root) return ask_processor(reduction, index, place);
  const std::uint32_t parent = tree.parents[place];
  if (!by_command) return send(LegKind::part, index, place, parent);
  const EndpointId from = tree.members[place];
  const EndpointId to = tree.members[parent];
  legs_.send_command(leg(LegKind::part, index, parent), from, to,
                     reduction.places[place].by_dma ? Fetched::payload : Fetched::nothing);
}

void Reductions::ask_processor(const Reduction& reduction, std::uint32_t index, std::uint32_t place) {
  const EndpointId at = groups_[reduction.group].tree.members[place];
  host_.needs_processor(at, {.kind = WorkKind::collective, .item = index, .life = reduction.life, .count = 1});
}

void Reductions::worked(EndpointId at, const Work& work) {
  Reduction& reduction = reductions_[work.item];
  if (reduction.life != work.life) return;
  const GroupTree& tree = groups_[reduction.group].tree;
  if (at == tree.members[tree.root]) return complete(work.item);
  const auto found = std::find(tree.members.begin(), tree.members.end(), at);
  DRYFLY_CHECK(found != tree.members.end());
  give_part(work.item, static_cast<std::uint32_t>(found - tree.members.begin()));
}

void Reductions::send_down(std::uint32_t index, std::uint32_t place, LegKind kind) {
  for (const std::uint32_t child : groups_[reductions_[index].group].children[place]) send(kind, index, place, child);
}

void Reductions::armed(std::uint32_t index, std::uint32_t at) {
  Place& place = reductions_[index].places[at];
  place.armed = true;
  if (place.held) ask_processor(reductions_[index], index, at);
}

// The CPU at the root has done its part.
void Reductions::complete(std::uint32_t index) {
  Reduction& reduction = reductions_[index];
  Group& group = groups_[reduction.group];
  group.armed_until[reduction.sequence % concurrent] = engine_.now() + group.tree.arming;
  ++totals_.reductions;
  hold(LegKind::launch_result, index, group.tree.root, spec_.egress_latency);
  landed(index, group.tree.root);
}

// Members hear of their reductions in the order in which they gave their parts.
void Reductions::landed(std::uint32_t index, std::uint32_t place) {
  Reduction& reduction = reductions_[index];
  reduction.places[place].landed = true;
  Group& group = groups_[reduction.group];
  for (;;) {
    const auto next = group.under_way.find(group.told[place]);
    if (next == group.under_way.end() || !reductions_[next->second].places[place].landed) return;
    Reduction& over = reductions_[next->second];
    DRYFLY_CHECK(over.places[place].contributed && over.unfinished > 0);
    ++group.told[place];
    const Token token = over.places[place].token;
    if (--over.unfinished == 0) {
      over.life = 0;
      reductions_.release(next->second);
      group.under_way.erase(next);
    }
    host_.reduced(group.tree.members[place], token, 0);
  }
}

// A part or a result is lost for good: nobody gets this result, and the group is of no more use.
void Reductions::fail(std::uint32_t index) {
  Group& group = groups_[reductions_[index].group];
  group.broken = true;
  for (const auto& [sequence, each] : group.under_way) {
    Reduction& reduction = reductions_[each];
    reduction.life = 0;
    for (std::uint32_t place = 0; place < reduction.places.size(); ++place) {
      const bool waits = reduction.places[place].contributed && sequence >= group.told[place];
      if (waits) host_.reduced(group.tree.members[place], reduction.places[place].token, error_unreachable);
    }
    reductions_.release(each);
  }
  group.under_way.clear();
}

}  // namespace dryfly::nic
