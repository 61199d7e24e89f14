#include "core/motif/job/reductions.hpp"

#include <algorithm>
#include <utility>

#include "core/spec/spec.hpp"
#include "core/topology/switch_tree.hpp"

namespace dryfly::motif {

std::uint32_t Reductions::group(const Name& name, const std::function<std::uint32_t(std::uint32_t)>& rank_at) {
  const auto [found, is_new] = names_.try_emplace(name, static_cast<std::uint32_t>(groups_.size()));
  if (!is_new) return found->second;
  Group group;
  std::vector<NicId> nics;
  for (std::uint32_t place = 0; place < name.size; ++place) {
    group.members.push_back(rank_at(place));
    nics.push_back(placement_.nic_of(group.members.back()));
  }
  const auto root = std::find_if(group.members.begin(), group.members.end(),
                                 [&](std::uint32_t rank) { return !roots_.contains(rank); });
  if (root == group.members.end()) {
    throw SpecError("algorithm switches: each of a communicator's " + std::to_string(name.size) +
                    " ranks is the root of another; accepted is one root for each communicator");
  }
  roots_.insert(*root);
  group.root = static_cast<std::uint32_t>(root - group.members.begin());
  group.parents = switch_tree(placement_.topology(), nics, group.root);
  group.children.resize(name.size);
  for (std::uint32_t place = 0; place < name.size; ++place) {
    if (place != group.root) group.children[group.parents[place]].push_back(place);
  }
  group.given.resize(name.size);
  groups_.push_back(std::move(group));
  return found->second;
}

std::uint32_t Reductions::begin(std::uint32_t group_index, std::uint64_t sequence) {
  Group& group = groups_[group_index];
  const auto [found, is_new] = group.under_way.try_emplace(sequence);
  if (!is_new) return found->second;
  const std::uint32_t index = found->second = reductions_.acquire();
  Reduction& reduction = reductions_[index];
  reduction.group = group_index;
  reduction.untold = static_cast<std::uint32_t>(group.members.size());
  reduction.sequence = sequence;
  reduction.places.assign(group.members.size(), {});
  for (std::uint32_t place = 0; place < reduction.places.size(); ++place) {
    reduction.places[place].missing = static_cast<std::uint32_t>(group.children[place].size()) + 1;
  }
  return index;
}

Pending Reductions::await(Rank& rank, Leg leg) {
  ++rank.open_;
  const std::uint32_t record = records_.begin({.rank = rank.id_, .peer = any_rank, .leg = leg});
  return {record, records_[record].serial};
}

Pending Reductions::contribute(Rank& rank, std::uint32_t group, std::uint32_t place) {
  DRYFLY_CHECK(groups_[group].members[place] == rank.id_);
  rank.work(times_.call);
  const Pending pending = await(rank, place == root(group) ? Leg::awaited_parts : Leg::awaited_result);
  const std::uint32_t index = begin(group, groups_[group].given[place]++);
  Place& mine = reductions_[index].places[place];
  mine.record = pending.record;
  mine.own = rank.clock_ + times_.command;
  part_came(index, place);
  return pending;
}

void Reductions::part_came(std::uint32_t index, std::uint32_t at) {
  Place& place = reductions_[index].places[at];
  DRYFLY_CHECK(place.missing > 0);
  if (--place.missing > 0) return;
  const Group& group = groups_[reductions_[index].group];
  if (at == group.root) return listener_.finish_receive(place.record, std::max(place.own, place.others));
  send(index, Leg::part, at, group.parents[at], place.own >= place.others ? place.own + times_.egress : place.others);
}

Pending Reductions::answer(Rank& root, std::uint32_t group_index) {
  Group& group = groups_[group_index];
  const Pending pending = await(root, Leg::awaited_result);
  const std::uint32_t index = group.under_way.at(group.answered++);
  const Instant at = root.clock_ + times_.command;
  reductions_[index].places[group.root].record = pending.record;
  send_down(index, group.root, at + times_.egress);
  tell(index, group.root, at);
  return pending;
}

void Reductions::arrived(std::uint32_t message) {
  const Record packet = records_[message];
  records_.end(message);
  const std::uint32_t index = packet.tag;
  const std::uint32_t place = packet.partner;
  const Instant now = engine_.now();
  if (packet.leg == Leg::part) {
    reductions_[index].places[place].others = now;
    return part_came(index, place);
  }
  send_down(index, place, now);
  tell(index, place, now + times_.ingress);
}

// One behind the other, as fast as the link takes them.
void Reductions::send_down(std::uint32_t index, std::uint32_t place, Instant ready) {
  for (const std::uint32_t child : groups_[reductions_[index].group].children[place]) {
    send(index, Leg::result, place, child, ready);
    ready = ready + times_.frame;
  }
}

void Reductions::send(std::uint32_t index, Leg leg, std::uint32_t from, std::uint32_t to, Instant ready) {
  const std::vector<std::uint32_t>& members = groups_[reductions_[index].group].members;
  ++packets_;
  const std::uint32_t message = records_.begin({.rank = members[from],
                                                .peer = members[to],
                                                .tag = index,
                                                .bytes = packet_bytes.count,
                                                .partner = to,
                                                .leg = leg});
  outlets_.offer(message, ready, engine_.now());
}

// The rank may go on at once, and begin the next one.
void Reductions::tell(std::uint32_t index, std::uint32_t place, Instant at) {
  Reduction& reduction = reductions_[index];
  const std::uint32_t record = reduction.places[place].record;
  if (--reduction.untold == 0) {
    groups_[reduction.group].under_way.erase(reduction.sequence);
    reductions_.release(index);
  }
  listener_.finish_receive(record, at);
}

}  // namespace dryfly::motif
