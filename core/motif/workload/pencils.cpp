#include "core/motif/workload/pencils.hpp"

#include <algorithm>

#include "core/motif/job/job.hpp"

namespace dryfly::motif {

Triple Cut::place_of(std::uint32_t rank) const {
  const std::uint32_t inside = rank % (box[0] * box[1] * box[2]);
  const std::uint32_t number = rank / (box[0] * box[1] * box[2]);
  const std::uint32_t boxes_y = pieces[1] / box[1];
  const std::uint32_t boxes_z = pieces[2] / box[2];
  return {number / boxes_z / boxes_y * box[0] + inside % box[0],
          number / boxes_z % boxes_y * box[1] + inside / box[0] % box[1],
          number % boxes_z * box[2] + inside / box[0] / box[1]};
}

std::uint32_t Cut::rank_at(const Triple& place) const {
  const auto [x, y, z] = place;
  const std::uint32_t number = (x / box[0] * (pieces[1] / box[1]) + y / box[1]) * (pieces[2] / box[2]) + z / box[2];
  const std::uint32_t inside = x % box[0] + (y % box[1] + z % box[2] * box[1]) * box[0];
  return number * (box[0] * box[1] * box[2]) + inside;
}

Cut::Span Cut::span(std::size_t axis, std::uint32_t piece) const {
  const auto begins = [&](std::uint64_t number) { return number * points[axis] / pieces[axis]; };
  return {begins(piece), begins(piece + std::uint64_t{1})};
}

Cut::Span Cut::overlapping(std::size_t axis, const Span& wanted) const {
  if (wanted.first >= wanted.last) return {0, 0};
  const auto holder = [&](std::uint64_t point) {
    auto piece = static_cast<std::uint32_t>(point * pieces[axis] / points[axis]);
    while (span(axis, piece).first > point) --piece;
    while (span(axis, piece).last <= point) ++piece;
    return piece;
  };
  return {holder(wanted.first), holder(wanted.last - 1) + std::uint64_t{1}};
}

Remap::Partners::Partners(const Cut& mine, const Cut& theirs, std::uint32_t rank) : theirs_(theirs), rank_(rank) {
  const Triple place = mine.place_of(rank);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    box_[axis] = mine.span(axis, place[axis]);
    const Cut::Span range = theirs.overlapping(axis, box_[axis]);
    first_[axis] = static_cast<std::uint32_t>(range.first);
    sides_[axis] = static_cast<std::uint32_t>(range.last - range.first);
    count_ *= sides_[axis];
  }
}

Remap::Partner Remap::Partners::at(std::uint32_t number) const {
  const Triple place{first_[0] + number % sides_[0], first_[1] + number / sides_[0] % sides_[1],
                     first_[2] + number / sides_[0] / sides_[1]};
  std::uint64_t points = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const Cut::Span theirs = theirs_.span(axis, place[axis]);
    const std::uint64_t begin = std::max(theirs.first, box_[axis].first);
    const std::uint64_t end = std::min(theirs.last, box_[axis].last);
    points *= end > begin ? end - begin : 0;
  }
  return {theirs_.rank_at(place), points};
}

std::uint32_t Remap::Partners::own() const {
  const Triple place = theirs_.place_of(rank_);
  std::uint32_t number = 0;
  for (std::size_t axis = 3; axis-- > 0;) {
    if (place[axis] < first_[axis] || place[axis] >= first_[axis] + sides_[axis]) return count_;
    number = number * sides_[axis] + place[axis] - first_[axis];
  }
  return number;
}

std::vector<Remap::Partner> Remap::others(const Cut& mine, const Cut& theirs, std::uint32_t rank) {
  const Partners partners(mine, theirs, rank);
  std::vector<Partner> others;
  for (std::uint32_t number = 0; number < partners.count(); ++number) {
    const Partner partner = partners.at(number);
    if (partner.rank != rank && partner.points > 0) others.push_back(partner);
  }
  const auto behind = [&](const Partner& partner) { return partner.rank - rank - 1; };  // around the end, too
  std::ranges::sort(others, {}, behind);
  return others;
}

Task Remap::run(Rank& me, std::uint32_t tag) const {
  for (const Partner& source : others(to_, from_, me.id())) me.irecv(source.rank, tag);
  for (const Partner& target : others(from_, to_, me.id())) {
    co_await me.send(target.rank, tag, Bytes{target.points * of_point_.count});
  }
  co_await me.wait_all();
}

// Of a piece that has several sides in another order than ranks have, all have to be put in order.
void Remap::Partners::add_in_turn(std::uint32_t first, std::uint32_t count, std::vector<Partner>& to) const {
  if (theirs_.box == theirs_.pieces) {
    const std::uint32_t behind = first_behind();
    for (std::uint32_t turn = first; turn < first + count; ++turn) to.push_back(at((behind + turn) % count_));
    return;
  }
  std::vector<Partner> others;
  for (std::uint32_t number = 0; number < count_; ++number) {
    if (const Partner partner = at(number); partner.rank != rank_) others.push_back(partner);
  }
  std::ranges::sort(others, {}, [&](const Partner& partner) { return partner.rank - rank_ - 1; });
  to.insert(to.end(), others.begin() + first, others.begin() + first + count);
}

// Numbers rise with ranks where x runs fastest in both.
std::uint32_t Remap::Partners::first_behind() const {
  std::uint32_t first = 0;
  for (std::uint32_t end = count_; first < end;) {
    const std::uint32_t middle = first + (end - first) / 2;
    if (at(middle).rank > rank_) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

Remap::Sample::Sample(const Remap& remap, std::uint32_t turns, double place)
    : remap_(&remap), turns_(turns), place_(place), received_(remap.from_.count()) {
  bool is_all = true;
  for (std::uint32_t rank = 0; rank < remap.from_.count(); ++rank) {
    const std::vector<Partner> some = targets(rank);
    is_all = is_all && some.size() == Partners(remap.from_, remap.to_, rank).others();
    for (const Partner& target : some) ++received_[target.rank];
  }
  if (is_all) {
    received_.clear();
  } else {
    of_ranks_ps_.resize(remap.from_.count());
  }
}

std::vector<Remap::Partner> Remap::Sample::targets(std::uint32_t rank) const {
  const Partners all(remap_->from_, remap_->to_, rank);
  const std::uint32_t others = all.others();
  const std::uint32_t ahead = std::min(turns_, others);
  const std::uint32_t later = std::min(turns_, others - ahead);
  std::vector<Partner> targets;
  all.add_in_turn(0, ahead, targets);
  all.add_in_turn(ahead + static_cast<std::uint32_t>(place_ * (others - ahead - later)), later, targets);
  return targets;
}

// What copies to these, of those that are on the rank's node, take more than to all of its node's partners on the mean.
double Remap::Sample::farther_ps(Rank& me, std::span<const Partner> some) const {
  const Job& job = me.job();
  double copies = 0;
  double taken_ps = 0;
  const auto add = [&](std::span<const Partner> partners, double& ps, double& count) {
    for (const Partner& partner : partners) {
      if (!job.costs().copies(job.placement(), me.id(), partner.rank)) continue;
      const Bytes size{partner.points * remap_->of_point_.count};
      ps += static_cast<double>(job.copy_time(me.id(), partner.rank, size).ps);
      ++count;
    }
  };
  add(some, taken_ps, copies);
  if (copies == 0) return 0;
  const Partners partners(remap_->from_, remap_->to_, me.id());
  std::vector<Partner> all;
  partners.add_in_turn(0, partners.others(), all);
  double all_copies = 0;
  double all_ps = 0;
  add(all, all_ps, all_copies);
  return taken_ps - all_ps / all_copies * copies;
}

Task Remap::Sample::run(Rank& me, std::uint32_t tag) {
  const Instant began = me.now();
  if (is_all()) {
    co_await remap_->run(me, tag);
    run_ps_ += (me.now() - began).ps;
    co_return;
  }
  for (std::uint32_t count = received_[me.id()]; count > 0; --count) me.irecv(any_rank, tag);
  const std::vector<Partner> some = targets(me.id());
  const std::size_t counted = std::min<std::size_t>((turns_ + 1) / 2, some.size());
  Instant counted_from = me.now();
  for (std::size_t turn = 0; turn < some.size(); ++turn) {
    if (turn + counted == some.size()) counted_from = me.now();
    co_await me.send(some[turn].rank, tag, Bytes{some[turn].points * remap_->of_point_.count});
  }
  const Instant sent = me.now();
  co_await me.wait_all();
  turns_run_ += some.size();
  turns_left_ += Partners(remap_->from_, remap_->to_, me.id()).others() - some.size();
  turns_counted_ += counted;
  if (counted > 0) {
    const double took_ps =
        static_cast<double>((sent - counted_from).ps) - farther_ps(me, std::span(some).last(counted));
    counted_ps_ += took_ps;
    of_ranks_ps_[me.id()] = static_cast<float>(took_ps) / static_cast<float>(counted);
  }
  waited_ps_ += (me.now() - sent).ps;
  run_ps_ += (me.now() - began).ps;
}

double Remap::Sample::left_ps() const {
  if (turns_counted_ == 0) return 0;
  const double each = counted_ps_ / static_cast<double>(turns_counted_);
  return each * static_cast<double>(turns_left_) / ranks();
}

double Remap::Sample::times() const {
  return turns_run_ == 0 ? 1 : static_cast<double>(turns_run_ + turns_left_) / static_cast<double>(turns_run_);
}

}  // namespace dryfly::motif
