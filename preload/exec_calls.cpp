// Programs that a rank's process turns into. `env LD_PRELOAD=tool program` and scripts that set it leave dryfly's own
// entries out, and the program would run in real time. So what this process has begun with is added behind them. An
// environment without LD_PRELOAD stays as it is. execl and its relatives, fexecve and posix_spawn are left as they are:
// shells, env and the launchers use none of them.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>

#include "preload/export.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

constexpr char variable[] = "LD_PRELOAD=";
constexpr char own_name[] = "/libdryfly-preload.so";  // in whatever folder: each MPI library has a copy
constexpr std::size_t variable_length = sizeof variable - 1;
constexpr std::size_t longest = 16384;

char at_start[longest / 2];  // of this process

__attribute__((constructor)) void note_preloads() {
  const char* const value = belongs_to_run() ? getenv("LD_PRELOAD") : nullptr;
  if (value != nullptr && strlen(value) < sizeof at_start) strcpy(at_start, value);
  real::execve();  // A child of vfork had better not look them up.
  real::execvpe();
}

int execute(real::execvpe_t* function, const char* file, char* const* arguments, char* const* environment) {
  std::size_t count = 0;
  std::size_t place = 0;
  bool lacks = false;
  for (; environment != nullptr && environment[count] != nullptr; ++count) {
    if (strncmp(environment[count], variable, variable_length) != 0) continue;
    place = count;
    lacks = at_start[0] != 0 && strstr(environment[count], own_name) == nullptr &&
            strlen(environment[count]) + strlen(at_start) + 2 <= longest;
  }
  if (!lacks) return function(file, arguments, environment);
  // On the stack: this may be a child of vfork, which has its parent's memory.
  char value[longest];
  char** const changed = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*)));
  memcpy(changed, environment, (count + 1) * sizeof(char*));
  stpcpy(stpcpy(stpcpy(value, environment[place]), ":"), at_start);
  changed[place] = value;
  return function(file, arguments, changed);
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  return execute(real::execve(), path, arguments, environment);
}
DRYFLY_EXPORT int execv(const char* path, char* const* arguments) noexcept {
  return execute(real::execve(), path, arguments, environ);
}
DRYFLY_EXPORT int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  return execute(real::execvpe(), file, arguments, environment);
}
DRYFLY_EXPORT int execvp(const char* file, char* const* arguments) noexcept {
  return execute(real::execvpe(), file, arguments, environ);
}
