#include "preload/caller.hpp"

#include <link.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/export.hpp"
#include "preload/loaded_part.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

// Beginnings of file names; a wheel adds a hash behind them. Tools have names like libmpiP.so and libmpitrace.so.
constexpr const char* real_time_libraries[] = {
    "libmpi.",  "libmpi_",  "libmpi-",     "libmpich",    "libmpicxx", "libmpifort", "libpmpi", "libfabric",
    "libpmi",   "libevent", "libprrte",    "libhwloc",    "libucp",    "libucs",     "libucm",  "libuct",
    "libxpmem", "mca_",     "libopen-pal", "libopen-rte", "libcxi",    "libdryfly",  "libpsm",  "libinfinipath",
};

bool begins_with(const char* text, const char* beginning) { return strncmp(text, beginning, strlen(beginning)) == 0; }

// By file name: whoever preloads a library means a tool, also if it is called libmpi_profile.so.
bool is_preloaded_tool(const char* name) {
  if (!begins_with(name, "libmpi") || begins_with(name, "libmpi.") || begins_with(name, "libmpich.")) return false;
  const char* list = getenv("LD_PRELOAD");
  const std::size_t length = strlen(name);
  while (list != nullptr && (list = strstr(list, name)) != nullptr) {
    const char end = list[length];
    list += length;
    if (end == 0 || end == ':' || end == ' ') return true;
  }
  return false;
}

bool is_real_time_library(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  if (is_preloaded_tool(name)) return false;
  for (const char* prefix : real_time_libraries) {
    if (begins_with(name, prefix)) return true;
  }
  return false;
}

struct Question {
  std::uintptr_t address;
  bool real_time;
};

int look_into(dl_phdr_info* object, std::size_t, void* data) {
  auto* question = static_cast<Question*>(data);
  if (part_with(*object, question->address) == nullptr) return 0;
  question->real_time = object->dlpi_name != nullptr && is_real_time_library(object->dlpi_name);
  return 1;
}

// One word per entry: the address, shifted, and the answer in the lowest bit. An entry is replaced as a whole, so
// that readers need no lock.
constexpr std::size_t cache_size = 1024;
std::atomic<std::uint64_t> cache[cache_size];

std::size_t slot_of(std::uintptr_t address) { return (address ^ (address >> 10) ^ (address >> 20)) % cache_size; }

}  // namespace

bool lives_in_real_time(const void* return_address) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  std::atomic<std::uint64_t>& entry = cache[slot_of(address)];
  const std::uint64_t known = entry.load(std::memory_order_relaxed);
  if (known >> 1 == address) return (known & 1) != 0;
  Question question{address, false};
  dl_iterate_phdr(look_into, &question);
  entry.store(std::uint64_t{address} << 1 | (question.real_time ? 1 : 0), std::memory_order_relaxed);
  return question.real_time;
}

void forget_callers() {
  for (auto& entry : cache) entry.store(0, std::memory_order_relaxed);
}

}  // namespace dryfly::preload

DRYFLY_EXPORT int dlclose(void* handle) noexcept {
  const int result = dryfly::preload::real::dlclose()(handle);
  dryfly::preload::forget_callers();
  return result;
}
