#include "core/nic/translations.hpp"

#include <algorithm>

namespace dryfly::nic {

namespace {

constexpr std::uint32_t unit_shift = 12;  // of DmaPages::page
constexpr std::uint32_t shift_bits = 6;

std::uint64_t packets_of(std::uint64_t bytes, Bytes packet) {
  return std::max<std::uint64_t>((bytes + packet.count - 1) / packet.count, 1);
}

}  // namespace

Translations::Unit& Translations::unit(NicId nic) {
  if (nic.value >= units_.size()) units_.resize(nic.value + std::size_t{1});
  Unit& found = units_[nic.value];
  if (found.walks.empty()) {
    found.counters = counters_.open(nic);
    found.walks.resize(std::max<std::uint32_t>(spec_.walks, 1));
  }
  return found;
}

// Where in its first page a payload begins is not known, and it is taken to begin with it.
template <class Each>
void Translations::for_each_part(const DmaPages& pages, Bytes size, Each each) const {
  if (!pages.kept) {
    for (std::uint64_t offset = 0; offset < size.count; offset += packet_.count) each(Part{0, offset, 1});
    return;
  }
  const std::uint32_t shift = pages.shift - unit_shift + spec_.span_shift;
  std::uint64_t offset = 0;
  while (offset < size.count) {
    const std::uint64_t at = pages.page + (offset >> unit_shift);
    const std::uint64_t line = at >> shift;
    const std::uint64_t end = (((line + 1) << shift) - pages.page) << unit_shift;
    const std::uint64_t bytes = std::min(end, size.count) - offset;
    each(Part{line << shift_bits | pages.shift, offset, packets_of(bytes, packet_)});
    offset += bytes;
  }
}

Duration Translations::walk_time(const DmaPages& pages) const {
  if (pages.by_processor) return spec_.ask;
  return pages.shift > spec_.page_shift ? spec_.read : spec_.read + spec_.read;
}

// Each takes the place of the oldest.
Instant Translations::walk(Unit& unit, const DmaPages& pages, Instant asked) const {
  Instant& until = unit.walks[unit.oldest];
  unit.oldest = (unit.oldest + 1) % unit.walks.size();
  until = std::max(asked, until) + walk_time(pages);
  return until;
}

Instant Translations::look_up(Unit& unit, const DmaPages& pages, const Part& part, Client client, Instant asked) {
  const bool outgoing = client == Client::outgoing;
  NicCounters& counters = counters_.at(unit.counters);
  const auto missed = [&] {
    counters.add(Counter::atu_cache_miss);
    counters.add(outgoing ? Counter::atu_cache_miss_oxe : Counter::atu_cache_miss_ixe);
    return walk(unit, pages, asked);
  };
  const auto found = [&](std::uint64_t times) {
    const bool longer = pages.shift > spec_.page_shift;
    counters.add(longer ? Counter::atu_cache_hit_derivative1_page_size : Counter::atu_cache_hit_base_page_size, times);
  };
  counters.add(outgoing ? Counter::atu_client_req_oxe : Counter::atu_client_req_ixe, part.packets);
  if (!pages.kept) return missed();
  const auto place = unit.places.find(part.line);
  if (place != unit.places.end()) {
    unit.lines.splice(unit.lines.begin(), unit.lines, place->second);
    found(part.packets);
    return place->second->ready;
  }
  found(part.packets - 1);
  if (unit.lines.size() >= spec_.lines) {
    counters.add(Counter::atu_cache_evictions);
    unit.places.erase(unit.lines.back().name);
    unit.lines.pop_back();
  }
  unit.lines.push_front({part.line, missed()});
  unit.places[part.line] = unit.lines.begin();
  return unit.lines.front().ready;
}

Duration Translations::reading(NicId nic, const DmaPages& pages, Bytes size, Instant now) {
  Unit& unit = this->unit(nic);
  const Duration ahead = walk_time(pages);
  Duration late{};
  for_each_part(pages, size, [&](const Part& part) {
    const Instant wanted = now + passed(part.offset);
    const Instant asked = wanted < now + ahead ? now : Instant{wanted.ps - ahead.ps};
    const Instant ready = look_up(unit, pages, part, Client::outgoing, asked);
    if (ready > wanted) late = std::max(late, ready - wanted);
  });
  return late;
}

Duration Translations::writing(NicId nic, const DmaPages& pages, Bytes size, Instant now) {
  Unit& unit = this->unit(nic);
  Duration late{};
  for_each_part(pages, size, [&](const Part& part) {
    const Duration before = passed(size.count - part.offset);
    const Instant asked{now.ps > before.ps ? now.ps - before.ps : 0};
    const Instant ready = look_up(unit, pages, part, Client::incoming, asked);
    if (ready > now) late = std::max(late, ready - now);
  });
  return late;
}

Duration Translations::placing(EndpointId at, NicId nic, const DmaPages& pages, Bytes size, Instant now) {
  if (at.value >= placed_until_.size()) placed_until_.resize(at.value + std::size_t{1});
  const Duration late = pages.needed() ? writing(nic, pages, size, now) : Duration{};
  Instant& until = placed_until_[at.value];
  until = std::max(until, now + late);
  return until - now;
}

}  // namespace dryfly::nic
