#include "core/nic/collectives.hpp"

#include <algorithm>

namespace dryfly::nic {

namespace {

// Of a reduction packet with its 32 bytes (cxip_coll.c); one for a barrier is as long.
constexpr Bytes packet_bytes{49};
constexpr std::uint32_t concurrent = 8;
// zbcoll: agree on a number for the group, tell all of the tree, hear whether all have it.
constexpr std::uint32_t join_passes = 3;

}  // namespace

std::uint32_t Collectives::open(const GroupTree& tree) {
  Group group;
  group.tree = tree;
  group.children.resize(tree.members.size());
  for (std::uint32_t place = 0; place < tree.members.size(); ++place) {
    if (place != tree.root) group.children[tree.parents[place]].push_back(place);
  }
  group.armed_until.resize(concurrent);
  group.told.resize(tree.members.size());
  groups_.push_back(std::move(group));
  ++totals_.groups;
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

// What is under way of it goes on.
void Collectives::close(std::uint32_t index) { groups_[index].broken = true; }

void Collectives::restart() {
  legs_.restart();
  totals_ = {};
}

bool Collectives::alive(const Leg& leg) const { return life_of(leg.kind, leg.owner) == leg.life; }

std::uint32_t Collectives::life_of(LegKind kind, std::uint32_t owner) const {
  return of_join(kind) ? joins_[owner].life : reductions_[owner].life;
}

Parcel Collectives::make_leg(LegKind kind, std::uint32_t owner, std::uint32_t place, bool acknowledged_later) {
  const std::uint32_t index = legs_.acquire();
  legs_[index] = {kind, acknowledged_later, owner, life_of(kind, owner), place};
  return {Step::collective, index};
}

void Collectives::hold(LegKind kind, std::uint32_t owner, std::uint32_t place, Duration time) {
  transport_.hold(make_leg(kind, owner, place), time);
}

Journey Collectives::journey(EndpointId from, EndpointId to) const {
  return {from, to, packet_bytes, TrafficClass::low_latency, true};
}

// By the NIC itself.
void Collectives::send(LegKind kind, std::uint32_t owner, std::uint32_t from, std::uint32_t to) {
  const auto& members = of_join(kind) ? joins_[owner].command.members : groups_[reductions_[owner].group].tree.members;
  const bool on_node = transport_.on_node(members[from], members[to]);
  ++totals_.packets;
  transport_.send(journey(members[from], members[to]), make_leg(kind, owner, to, !on_node));
}

void Collectives::arrived(Parcel parcel) {
  const Leg leg = legs_[parcel.operation];
  if (!leg.acknowledged_later) legs_.release(parcel.operation);
  if (!alive(leg)) return;
  of_join(leg.kind) ? go_on_joining(leg) : go_on(leg);
}

void Collectives::failed(Parcel parcel, bool delivered) {
  const Leg leg = legs_[parcel.operation];
  legs_.release(parcel.operation);
  if (delivered || !alive(leg)) return;
  of_join(leg.kind) ? fail_join(leg.owner) : fail(leg.owner);
}

void Collectives::go_on(const Leg& leg) {
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

std::uint32_t Collectives::begin(std::uint32_t group_index, std::uint64_t sequence) {
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

void Collectives::contribute(const ContributeCommand& command) {
  Group& group = groups_[command.group];
  if (group.broken) return host_.reduced(command.token, error_unreachable);
  const std::uint32_t index = begin(command.group, command.sequence);
  Reduction& reduction = reductions_[index];
  Place& place = reduction.places[command.member];
  DRYFLY_CHECK(!place.contributed);
  place.contributed = true;
  place.token = command.token;
  place.by_dma = command.by_dma;
  transport_.counters_of(group.tree.members[command.member])
      .add(command.by_dma ? Counter::cq_num_dma_cmds : Counter::cq_num_idc_cmds);
  const bool is_root = command.member == group.tree.root;
  place.held = reduction.needs_arming && !place.armed && !is_root;
  if (place.held) return;
  if (is_root && reduction.needs_arming) hold(LegKind::launch_arm, index, command.member, spec_.egress_latency);
  give_part(index, command.member);
}

void Collectives::give_part(std::uint32_t index, std::uint32_t place) { part_came(index, place, true); }

// The engine at this place has one more; `by_command`: the part of the place itself, which comes out of its NIC.
void Collectives::part_came(std::uint32_t index, std::uint32_t place, bool by_command) {
  Reduction& reduction = reductions_[index];
  const GroupTree& tree = groups_[reduction.group].tree;
  if (--reduction.places[place].missing > 0) return;
  if (place == tree.root) return ask_processor(reduction, index, place);
  const std::uint32_t parent = tree.parents[place];
  if (!by_command) return send(LegKind::part, index, place, parent);
  const EndpointId from = tree.members[place];
  const EndpointId to = tree.members[parent];
  ++totals_.packets;
  transport_.send_command(journey(from, to), make_leg(LegKind::part, index, parent, !transport_.on_node(from, to)),
                          reduction.places[place].by_dma ? Fetched::payload : Fetched::nothing);
}

void Collectives::ask_processor(const Reduction& reduction, std::uint32_t index, std::uint32_t place) {
  const EndpointId at = groups_[reduction.group].tree.members[place];
  host_.needs_processor(at, {.kind = WorkKind::collective, .item = index, .life = reduction.life, .count = 1});
}

void Collectives::worked(EndpointId at, const Work& work) {
  Reduction& reduction = reductions_[work.item];
  if (reduction.life != work.life) return;
  const GroupTree& tree = groups_[reduction.group].tree;
  if (at == tree.members[tree.root]) return complete(work.item);
  const auto found = std::find(tree.members.begin(), tree.members.end(), at);
  give_part(work.item, static_cast<std::uint32_t>(found - tree.members.begin()));
}

void Collectives::send_down(std::uint32_t index, std::uint32_t place, LegKind kind) {
  for (const std::uint32_t child : groups_[reductions_[index].group].children[place]) send(kind, index, place, child);
}

void Collectives::armed(std::uint32_t index, std::uint32_t at) {
  Place& place = reductions_[index].places[at];
  place.armed = true;
  if (place.held) ask_processor(reductions_[index], index, at);
}

// The CPU at the root has done its part.
void Collectives::complete(std::uint32_t index) {
  Reduction& reduction = reductions_[index];
  Group& group = groups_[reduction.group];
  group.armed_until[reduction.sequence % concurrent] = engine_.now() + group.tree.arming;
  ++totals_.reductions;
  hold(LegKind::launch_result, index, group.tree.root, spec_.egress_latency);
  landed(index, group.tree.root);
}

// Members hear of their reductions in the order in which they gave their parts.
void Collectives::landed(std::uint32_t index, std::uint32_t place) {
  Reduction& reduction = reductions_[index];
  reduction.places[place].landed = true;
  Group& group = groups_[reduction.group];
  for (;;) {
    const auto next = group.under_way.find(group.told[place]);
    if (next == group.under_way.end() || !reductions_[next->second].places[place].landed) return;
    Reduction& over = reductions_[next->second];
    ++group.told[place];
    const Token token = over.places[place].token;
    if (--over.unfinished == 0) {
      over.life = 0;
      reductions_.release(next->second);
      group.under_way.erase(next);
    }
    host_.reduced(token, 0);
  }
}

// A part or a result is lost for good: nobody gets this result, and the group is of no more use.
void Collectives::fail(std::uint32_t index) {
  Group& group = groups_[reductions_[index].group];
  group.broken = true;
  for (const auto& [sequence, each] : group.under_way) {
    Reduction& reduction = reductions_[each];
    reduction.life = 0;
    for (std::uint32_t place = 0; place < reduction.places.size(); ++place) {
      const bool waits = reduction.places[place].contributed && sequence >= group.told[place];
      if (waits) host_.reduced(reduction.places[place].token, error_unreachable);
    }
    reductions_.release(each);
  }
  group.under_way.clear();
}

void Collectives::join(const JoinCommand& command) {
  const std::uint32_t index = joins_.acquire();
  Join& join = joins_[index];
  join.command = command;
  join.life = ++lives_;
  const auto size = static_cast<std::uint32_t>(command.members.size());
  join.unfinished = size;
  join.places.resize(size, {0, join_passes});
  for (std::uint32_t place = size; place-- > 0;) begin_pass(index, place);
}

// Row by row: the children of a place stand together in the next row.
std::uint32_t Collectives::children_in(const Join& join, std::uint32_t place) const {
  const std::uint64_t first = std::uint64_t{place} * join.command.radix + 1;
  const std::uint64_t size = join.command.members.size();
  return first >= size ? 0 : static_cast<std::uint32_t>(std::min<std::uint64_t>(join.command.radix, size - first));
}

void Collectives::begin_pass(std::uint32_t index, std::uint32_t place) {
  Join& join = joins_[index];
  join.places[place].missing = children_in(join, place);
  if (join.places[place].missing == 0) all_parts_read(index, place);
}

void Collectives::all_parts_read(std::uint32_t index, std::uint32_t place) {
  if (place == 0) return read_down(index, place);
  send(LegKind::join_up, index, place, (place - 1) / joins_[index].command.radix);
}

void Collectives::read_down(std::uint32_t index, std::uint32_t place) {
  Join& join = joins_[index];
  const std::uint32_t first = place * join.command.radix + 1;
  for (std::uint32_t i = 0; i < children_in(join, place); ++i) send(LegKind::join_down, index, place, first + i);
  if (--join.places[place].passes_left > 0) return begin_pass(index, place);
  const Token token = join.command.token;
  if (--join.unfinished == 0) {
    join.life = 0;
    joins_.release(index);
  }
  host_.joined(token, place, 0);
}

void Collectives::go_on_joining(const Leg& leg) {
  const Duration step = joins_[leg.owner].command.step;
  switch (leg.kind) {
    case LegKind::join_up:
      return hold(LegKind::join_up_read, leg.owner, leg.place, step);
    case LegKind::join_down:
      return hold(LegKind::join_down_read, leg.owner, leg.place, step);
    case LegKind::join_up_read:
      if (--joins_[leg.owner].places[leg.place].missing == 0) all_parts_read(leg.owner, leg.place);
      return;
    default:
      return read_down(leg.owner, leg.place);
  }
}

void Collectives::fail_join(std::uint32_t index) {
  Join& join = joins_[index];
  join.life = 0;
  for (std::uint32_t place = 0; place < join.places.size(); ++place) {
    if (join.places[place].passes_left > 0) host_.joined(join.command.token, place, error_unreachable);
  }
  joins_.release(index);
}

}  // namespace dryfly::nic
