#include "provider/traffic_class.hpp"

#include <rdma/fabric.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/log.hpp"

namespace dryfly::provider {

namespace {

struct Label {
  std::uint32_t label;
  const char* name;  // Cray MPICH's
  std::uint8_t traffic_class;
  const char* of_profile;  // as DRYFLY_TRAFFIC_CLASSES has it
};

constexpr std::uint8_t best_effort = 3;
constexpr char default_variable[] = "MPICH_OFI_DEFAULT_TCLASS";
constexpr char errors_variable[] = "MPICH_OFI_TCLASS_ERRORS";

// As on the machine there is no label for network control.
constexpr Label labels[] = {
    {FI_TC_DEDICATED_ACCESS, "TC_DEDICATED_ACCESS", 0, "dedicated"},
    {FI_TC_LOW_LATENCY, "TC_LOW_LATENCY", 1, "low_latency"},
    {FI_TC_BULK_DATA, "TC_BULK_DATA", 2, "bulk_data"},
    {FI_TC_BEST_EFFORT, "TC_BEST_EFFORT", best_effort, "best_effort"},
    {FI_TC_SCAVENGER, "TC_SCAVENGER", 4, "scavenger"},
};

const Label* label_named(const char* name) {
  for (const Label& each : labels) {
    if (strcmp(name, each.name) == 0) return &each;
  }
  return nullptr;
}

const char* text_of(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != 0 ? value : nullptr;
}

std::uint8_t class_by_default() {
  const char* wanted = text_of(default_variable);
  const Label* label = wanted != nullptr ? label_named(wanted) : nullptr;
  return label != nullptr ? label->traffic_class : best_effort;
}

// Is `word` in a list with commas?
bool is_listed(const char* list, const char* word) {
  const std::size_t length = strlen(word);
  for (const char* at = strstr(list, word); at != nullptr; at = strstr(at + 1, word)) {
    if ((at == list || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return true;
  }
  return false;
}

}  // namespace

bool traffic_class_of(std::uint32_t endpoint_label, std::uint32_t domain_label, std::uint8_t& traffic_class) {
  const std::uint32_t label = endpoint_label != FI_TC_UNSPEC ? endpoint_label : domain_label;
  if (label == FI_TC_UNSPEC) {
    traffic_class = class_by_default();
    return true;
  }
  for (const Label& each : labels) {
    if (each.label != label) continue;
    traffic_class = each.traffic_class;
    return true;
  }
  log("there is no traffic class 0x%x", label);
  return false;
}

ClassSettings check_class_settings(char* text, std::size_t room) {
  const char* errors = text_of(errors_variable);
  const bool fatal = errors != nullptr && strcmp(errors, "error") == 0;
  const bool silent = errors != nullptr && strcmp(errors, "silent") == 0;
  if (errors != nullptr && !fatal && !silent && strcmp(errors, "warn") != 0) {
    snprintf(text, room, "%s=%s: accepted is warn, silent or error", errors_variable, errors);
    return ClassSettings::refused;
  }
  const char* wanted = text_of(default_variable);
  if (wanted == nullptr) return ClassSettings::fine;
  const Label* label = label_named(wanted);
  if (label == nullptr) {
    snprintf(text, room,
             "%s=%s: accepted is TC_BEST_EFFORT, TC_LOW_LATENCY, TC_BULK_DATA, TC_DEDICATED_ACCESS or TC_SCAVENGER",
             default_variable, wanted);
    return ClassSettings::refused;
  }
  const char* profile = text_of("DRYFLY_TRAFFIC_CLASSES");
  if (profile == nullptr || silent || is_listed(profile, label->of_profile)) return ClassSettings::fine;
  snprintf(text, room, "%s=%s: the machine's QoS profile has %s only%s", default_variable, wanted, profile,
           fatal ? "" : "; it travels in the profile's default class");
  return fatal ? ClassSettings::refused : ClassSettings::doubtful;
}

}  // namespace dryfly::provider
