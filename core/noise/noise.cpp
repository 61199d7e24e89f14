#include "core/noise/noise.hpp"

#include "core/unit/random.hpp"

namespace dryfly {

namespace {

// Periods looked through for the next detour of a source that has one in few of them.
constexpr std::uint64_t periods_ahead = 64;
// Of one detour's draws.
enum Draw : std::uint64_t { happens, core, begins, lasts, draw_count };
constexpr std::uint64_t phase_draw = ~std::uint64_t{0};
constexpr std::uint64_t skew_source = 0xffff;
constexpr std::uint64_t whole_node = 0xffff;
constexpr std::uint64_t far_future = ~std::uint64_t{0};

RandomStream stream(const NoiseSettings& settings, std::uint64_t source, std::uint64_t node, std::uint64_t core) {
  return {settings.seed, source << 48 | node << 16 | core, Purpose::noise};
}

}  // namespace

void Noise::begin(const NoiseSettings& settings, std::uint32_t node, std::uint32_t core, std::uint64_t origin_ps,
                  NoiseTaken& taken) {
  taken_ = &taken;
  node_ = node;
  core_ = core;
  origin_ps_ = origin_ps;
  set_quiet(origin_ps, origin_ps);
  settings_ = settings.source_count == 0 && settings.start_skew_ps == 0 ? nullptr : &settings;
}

std::uint64_t Noise::start_skew_ps() const {
  if (settings_ == nullptr) return 0;
  return stream(*settings_, skew_source, node_, core_).within(0, settings_->start_skew_ps + 1);
}

std::uint64_t Noise::interrupted_ps(std::uint64_t from_ps, std::uint64_t work_ps) {
  std::uint64_t at = from_ps - origin_ps_;
  for (std::uint64_t left = work_ps; left > 0;) {
    at = free_from(at);
    const std::uint64_t until = quiet_until(at);
    set_quiet(origin_ps_ + at, origin_ps_ + until);
    const std::uint64_t done = left < until - at ? left : until - at;
    at += done;
    left -= done;
  }
  const std::uint64_t took = at - (from_ps - origin_ps_);
  taken_->interrupted_ps += took - work_ps;
  return took;
}

std::uint64_t Noise::delayed_ps(std::uint64_t at_ps) {
  if (at_ps == far_future) return at_ps;
  const std::uint64_t free = free_from(at_ps - origin_ps_);
  set_quiet(origin_ps_ + free, origin_ps_ + quiet_until(free));
  taken_->delayed_ps += origin_ps_ + free - at_ps;
  return origin_ps_ + free;
}

bool Noise::reaches(const NoiseSource& source) const { return source.node == any_node || source.node == node_; }

Noise::Detour Noise::detour(std::uint32_t source, std::uint64_t period) const {
  const NoiseSource& of = settings_->sources[source];
  const RandomStream draws = stream(*settings_, source, node_, of.reach == NoiseReach::each_core ? core_ : whole_node);
  const std::uint64_t first = period * draw_count;
  if (draws.within(first + happens, noise_certain) >= of.chance) return {};
  if (of.reach == NoiseReach::one_core && draws.within(first + core, settings_->cores) != core_) return {};
  const std::uint64_t phase = draws.within(of.regular != 0 ? phase_draw : first + begins, of.period_ps);
  const std::uint64_t begin = period * of.period_ps + phase;
  return {begin, begin + of.least_ps + draws.within(first + lasts, of.most_ps - of.least_ps + 1)};
}

// Where the detours that the instant lies in are over. A detour is no longer than its source's period, so only those of
// the period and of the one before can last until here.
std::uint64_t Noise::free_from(std::uint64_t at_ps) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t source = 0; source < settings_->source_count; ++source) {
      if (!reaches(settings_->sources[source])) continue;
      const std::uint64_t period = at_ps / settings_->sources[source].period_ps;
      for (std::uint64_t each = period == 0 ? 0 : period - 1; each <= period; ++each) {
        const Detour found = detour(source, each);
        if (found.begin_ps > at_ps || found.end_ps <= at_ps) continue;
        at_ps = found.end_ps;
        ++taken_->detours;
        moved = true;
      }
    }
  }
  return at_ps;
}

// No detour begins from `at_ps`, which is in none, until there.
std::uint64_t Noise::quiet_until(std::uint64_t at_ps) const {
  std::uint64_t until = far_future - origin_ps_;
  for (std::uint32_t source = 0; source < settings_->source_count; ++source) {
    const NoiseSource& of = settings_->sources[source];
    if (!reaches(of)) continue;
    const std::uint64_t first = at_ps / of.period_ps;
    std::uint64_t looked_until = (first + periods_ahead) * of.period_ps;
    for (std::uint64_t period = first; period < first + periods_ahead; ++period) {
      const Detour found = detour(source, period);
      if (found.end_ps == found.begin_ps || found.begin_ps < at_ps) continue;
      looked_until = found.begin_ps;
      break;
    }
    if (looked_until < until) until = looked_until;
  }
  return until;
}

}  // namespace dryfly
