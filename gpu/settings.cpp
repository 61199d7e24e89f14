#include "gpu/settings.hpp"

#include <stdlib.h>
#include <string.h>

namespace dryfly::gpu {

namespace {

std::uint64_t number_of(const char* text, const char* name) {
  const std::size_t length = strlen(name);
  for (const char* at = text; at != nullptr; at = strchr(at, ' ')) {
    while (*at == ' ') ++at;
    if (strncmp(at, name, length) == 0 && at[length] == '=') return strtoull(at + length + 1, nullptr, 10);
  }
  return 0;
}

bool has_word(const char* text, const char* word) {
  const char* const found = strstr(text, word);
  const char after = found != nullptr ? found[strlen(word)] : 'x';
  return after == ' ' || after == '\0';
}

// What a mask leaves of the devices of a node, or of those that another mask has left, in its order.
struct Seen {
  int count;
  int physical[devices_max];

  int place_of(int device) const {
    for (int i = 0; i < count; ++i) {
      if (physical[i] == device) return i;
    }
    return -1;
  }
};

// How a runtime reads a mask. Each ends the list at the first word that is no device.
struct Rule {
  enum class Form { decimal, any_base, exact } form;          // as strtol has it, or as the number is printed
  enum class Twice { leaves_none, ends, counts_once } twice;  // what a device does that is named again
};
constexpr Rule cuda_rule = {Rule::Form::decimal, Rule::Twice::leaves_none};
constexpr Rule rocr_rule = {Rule::Form::any_base, Rule::Twice::ends};
constexpr Rule hip_rule = {Rule::Form::exact, Rule::Twice::counts_once};

// The number that the word up to `end` is, or -1.
long device_of(const char* at, const char* end, Rule::Form form) {
  if (form == Rule::Form::exact && (*at < '0' || *at > '9' || (*at == '0' && at + 1 != end))) return -1;
  char* after = nullptr;
  const long device = strtol(at, &after, form == Rule::Form::any_base ? 0 : 10);
  if (after == at) return -1;
  while (form == Rule::Form::any_base && after < end && *after == ' ') ++after;
  return after == end ? device : -1;
}

Seen masked(const Seen& all, const char* mask, const Rule& rule) {
  Seen seen{};
  for (const char* at = mask; seen.count < devices_max;) {
    const char* const comma = strchr(at, ',');
    const char* const end = comma != nullptr ? comma : at + strlen(at);
    const long device = device_of(at, end, rule.form);
    if (device < 0 || device >= all.count) return seen;
    if (seen.place_of(all.physical[device]) < 0) {
      seen.physical[seen.count++] = all.physical[device];
    } else if (rule.twice != Rule::Twice::counts_once) {
      return rule.twice == Rule::Twice::ends ? seen : Seen{};
    }
    if (comma == nullptr) return seen;
    at = comma + 1;
  }
  return seen;
}

Seen seen_by(Api api, Seen all, const Masks& masks) {
  if (api == Api::cuda) return masks.cuda != nullptr ? masked(all, masks.cuda, cuda_rule) : all;
  if (masks.rocr != nullptr) all = masked(all, masks.rocr, rocr_rule);
  const char* const mask = masks.hip != nullptr ? masks.hip : masks.cuda;
  return mask != nullptr ? masked(all, mask, hip_rule) : all;
}

// Words without a device are passed over, each device counts once, and the order is the node's.
Seen seen_by_level_zero(const Seen& all, const Settings& settings, const char* mask) {
  if (mask == nullptr || *mask == '\0') return all;
  bool named[devices_max] = {};
  for (const char* at = mask; at != nullptr; at = strchr(at, ',')) {
    while (*at == ',' || *at == ' ') ++at;
    char* after = nullptr;
    const unsigned long number = strtoul(at, &after, 10);
    if (after == at) continue;
    const unsigned long tiles = settings.hierarchy == Hierarchy::composite ? static_cast<unsigned>(settings.tiles) : 1;
    unsigned long first = number * tiles, count = tiles;
    if (tiles > 1 && *after == '.') {
      const unsigned long tile = strtoul(after + 1, nullptr, 10);
      if (tile >= tiles) continue;
      first += tile;
      count = 1;
    }
    for (unsigned long i = first; i < first + count && i < static_cast<unsigned>(all.count); ++i) named[i] = true;
  }
  Seen seen{};
  for (int i = 0; i < all.count; ++i) {
    if (named[i]) seen.physical[seen.count++] = i;
  }
  return seen;
}

Hierarchy hierarchy_of(const char* name) {
  if (name != nullptr && strcmp(name, "COMPOSITE") == 0) return Hierarchy::composite;
  return name != nullptr && strcmp(name, "COMBINED") == 0 ? Hierarchy::combined : Hierarchy::flat;
}

// "links=": a digit for each pair of the node's devices, row by row. Absent: one link between each two.
void read_links(const char* text, int devices, Settings& settings) {
  const char* const found = strstr(text, "links=");
  const char* const digits = found != nullptr ? found + strlen("links=") : nullptr;
  for (int i = 0; i < devices; ++i) {
    for (int j = 0; j < devices; ++j) {
      settings.links[i][j] = digits != nullptr ? static_cast<std::uint8_t>(digits[i * devices + j] - '0') : 1;
    }
  }
}

}  // namespace

Masks masks_of_environment() {
  return {.cuda = getenv("CUDA_VISIBLE_DEVICES"),
          .rocr = getenv("ROCR_VISIBLE_DEVICES"),
          .hip = getenv("HIP_VISIBLE_DEVICES"),
          .level_zero = getenv("ZE_AFFINITY_MASK"),
          .hierarchy = getenv("ZE_FLAT_DEVICE_HIERARCHY")};
}

std::uint64_t peer_rate(const Settings& settings, int from, int to) {
  if (settings.tiles > 1 && from / settings.tiles == to / settings.tiles) return settings.tile_bytes_per_s;
  return settings.peer_bytes_per_s * settings.links[from][to];
}

Settings read_settings(const char* text, const Masks& masks) {
  Settings settings{};
  if (text == nullptr) return settings;
  settings.api = has_word(text, "runtime=hip")          ? Api::hip
                 : has_word(text, "runtime=level-zero") ? Api::level_zero
                                                        : Api::cuda;
  const std::uint64_t given = number_of(text, "devices");
  const int devices = given < devices_max ? static_cast<int>(given) : devices_max;
  const std::uint64_t tiles = number_of(text, "tiles");
  settings.tiles = tiles == 0 ? 1 : static_cast<int>(tiles);
  settings.hierarchy = hierarchy_of(masks.hierarchy);
  settings.capability = static_cast<int>(number_of(text, "capability"));
  settings.multiprocessors = static_cast<int>(number_of(text, "multiprocessors"));
  settings.memory_bytes = number_of(text, "memory");
  settings.call_ps = number_of(text, "call_ps");
  settings.lookup_ps = number_of(text, "lookup_ps");
  settings.query_ps = number_of(text, "query_ps");
  settings.short_call_ps = number_of(text, "short_call_ps");
  settings.allocation_ps = number_of(text, "allocation_ps");
  settings.pages.pinning_bytes_per_s = number_of(text, "pinning_rate");
  settings.pages.registration_bytes_per_s = number_of(text, "registration_rate");
  settings.copy = {number_of(text, "latency_ps"), number_of(text, "step_ps")};
  settings.local = {number_of(text, "local_latency_ps"), number_of(text, "local_step_ps")};
  settings.word.ps = number_of(text, "word_ps");
  settings.word.in_batch_ps = number_of(text, "word_in_batch_ps");
  settings.host_access = number_of(text, "host_access") != 0;
  settings.load = {number_of(text, "load_latency_ps"), number_of(text, "load_rate")};
  settings.store = {number_of(text, "store_latency_ps"), number_of(text, "store_rate")};
  settings.kernel_ps = number_of(text, "kernel_ps");
  settings.operations_per_s[0] = number_of(text, "fp64_rate");
  settings.operations_per_s[1] = number_of(text, "fp32_rate");
  settings.operations_per_s[2] = number_of(text, "half_rate");
  settings.gpu_bytes_per_s = number_of(text, "gpu_link_rate");
  settings.node.in_bytes_per_s = number_of(text, "node_in_rate");
  settings.node.out_bytes_per_s = number_of(text, "node_out_rate");
  settings.link_bytes_per_s = number_of(text, "link_rate");
  settings.peer_bytes_per_s = number_of(text, "peer_rate");
  settings.tile_bytes_per_s = number_of(text, "tile_rate");
  settings.memory_bytes_per_s = number_of(text, "memory_rate");
  settings.pageable_bytes_per_s = number_of(text, "pageable_rate");
  Seen all{.count = devices, .physical = {}};
  for (int i = 0; i < devices; ++i) all.physical[i] = i;
  const Seen seen = settings.api == Api::level_zero ? seen_by_level_zero(all, settings, masks.level_zero)
                                                    : seen_by(settings.api, all, masks);
  settings.devices = seen.count;
  memcpy(settings.physical, seen.physical, sizeof seen.physical);
  read_links(text, devices, settings);
  return settings;
}

}  // namespace dryfly::gpu
