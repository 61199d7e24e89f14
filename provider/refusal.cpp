#include "provider/refusal.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rank/refusal.hpp"

namespace dryfly::provider {

namespace {

// In one write, as the other ranks say things too.
void say(const rank::Channel& channel, const char* text) {
  dprintf(STDERR_FILENO, "dryfly: rank %u on %s: %s\n", channel.rank(), channel.welcome().node_name, text);
}

}  // namespace

void refuse_setting(const rank::Channel& channel, const char* reason) {
  const char* run = getenv("DRYFLY_CHANNEL");
  const bool of_run = run != nullptr && *run != 0;
  const bool speaks = rank::speaks_for_run("setting");
  if (speaks) say(channel, reason);
  if (of_run) rank::end_refused(speaks);
}

void tell(const rank::Channel& channel, About about, const char* format, ...) {
  const std::uint32_t bit = 1U << static_cast<std::uint32_t>(about);
  if ((channel.header().told.fetch_or(bit) & bit) != 0) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  say(channel, text);
}

}  // namespace dryfly::provider
