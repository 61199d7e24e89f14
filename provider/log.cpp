#include "provider/log.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

namespace dryfly::provider {

bool log_enabled() {
  const char* value = getenv("DRYFLY_LOG");
  return value != nullptr && *value != 0 && *value != '0';
}

void log(const char* format, ...) {
  if (!log_enabled()) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  dprintf(STDERR_FILENO, "dryfly provider: %s\n", line);
}

}  // namespace dryfly::provider
