// What a run's spec says of the noise of its cores, for ranks and for motifs alike: without entries `noise.*` all zero,
// which is a silent machine. Models docs/model/noise.md.
#pragma once

#include <string>

#include "core/noise/settings.hpp"
#include "core/spec/fields.hpp"
#include "core/spec/spec.hpp"

namespace dryfly {

static_assert(fields::noise_sources.most == noise_sources_max);

inline NoiseReach noise_reach(const std::string& text) {
  if (text == "one core") return NoiseReach::one_core;
  return text == "all cores" ? NoiseReach::all_cores : NoiseReach::each_core;
}

inline NoiseSettings read_noise(const Spec& spec) {
  NoiseSettings noise{};
  if (!spec.has(fields::noise_sources)) return noise;
  noise.seed = spec.number(fields::run_seed);
  noise.start_skew_ps = spec.number(fields::noise_start_skew_ps);
  noise.cores = spec.small(fields::noise_cores);
  noise.source_count = spec.small(fields::noise_sources);
  for (std::uint32_t source = 0; source < noise.source_count; ++source) {
    const bool on_one_node = spec.has(fields::noise_node, {source});
    noise.sources[source] = {
        .period_ps = spec.number(fields::noise_period_ps, {source}),
        .least_ps = spec.number(fields::noise_least_ps, {source}),
        .most_ps = spec.number(fields::noise_most_ps, {source}),
        .chance = spec.number(fields::noise_chance_ppb, {source}),
        .reach = noise_reach(spec.text(fields::noise_on, {source})),
        .regular = spec.text(fields::noise_instants, {source}) == "regular" ? 1U : 0U,
        .node = on_one_node ? spec.small(fields::noise_node, {source}) : any_node,
        .reserved = 0,
    };
  }
  return noise;
}

}  // namespace dryfly
