#include "core/motif/workload/pencils.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/motif/workload/workload.hpp"

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

std::vector<std::uint32_t> Remap::chosen(const Partners& targets, std::uint32_t rank, std::uint32_t partners) {
  const std::uint32_t own = targets.own();
  const bool among = own < targets.count();
  const std::uint32_t others = targets.others();
  const std::uint32_t count = std::min(partners, others);
  // Ranks that exchange among themselves all take the same distances, so that each receives as many as it sends; other
  // ranks with the same targets take different ones.
  const std::uint32_t key = among ? targets.at(0).rank : rank;
  double whole = 0;
  const double shift = std::modf(static_cast<double>(key) * std::numbers::phi, &whole);
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t each = 0; each < count; ++each) {
    const auto distance = static_cast<std::uint32_t>((each + shift) * others / count);
    const std::uint32_t from = among ? own + 1 : 0;
    numbers.push_back((from + std::min(distance, others - 1)) % targets.count());
  }
  return numbers;
}

Task Remap::run(Rank& me, std::uint32_t tag) const {
  for (const Partner& source : others(to_, from_, me.id())) me.irecv(source.rank, tag);
  for (const Partner& target : others(from_, to_, me.id())) {
    co_await me.send(target.rank, tag, Bytes{target.points * of_point_.count});
  }
  co_await me.wait_all();
}

Task Remap::run_sample(Rank& me, Sample& sample) const {
  for (std::uint32_t count = sample.received[me.id()]; count > 0; --count) me.irecv(any_rank, 0);
  const Partners targets(from_, to_, me.id());
  const std::vector<std::uint32_t> numbers = chosen(targets, me.id(), sample.partners);
  const Instant began = me.now();
  for (const std::uint32_t number : numbers) {
    const Partner target = targets.at(number);
    co_await me.send(target.rank, 0, Bytes{target.points * of_point_.count});
  }
  if (!numbers.empty()) {
    sample.ps += static_cast<double>((me.now() - began).ps * targets.others()) / static_cast<double>(numbers.size());
  }
  co_await me.wait_all();
}

Duration Remap::sampled(Stage& stage, Answer& answer, std::uint32_t partners) const {
  Sample sample{.partners = partners, .received = std::vector<std::uint16_t>(from_.count())};
  for (std::uint32_t rank = 0; rank < from_.count(); ++rank) {
    const Partners targets(from_, to_, rank);
    for (const std::uint32_t number : chosen(targets, rank, partners)) ++sample.received[targets.at(number).rank];
  }
  stage.run([&](Rank& me) { return run_sample(me, sample); }, answer, [](Job&) {});
  return Duration{static_cast<std::uint64_t>(sample.ps / from_.count())};
}

}  // namespace dryfly::motif
