#include "preload/node/file_calls.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "preload/export.hpp"
#include "preload/node/binding.hpp"
#include "preload/node/processor_files.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

// What is shown in its place, with all that is in it: by these names in the folder.
constexpr const char* shown[][2] = {{"/sys/devices/system/node", "node"},
                                    {"/sys/devices/system/cpu/online", "online"},
                                    {"/sys/devices/system/cpu/possible", "possible"},
                                    {"/sys/devices/system/cpu/present", "present"},
                                    {"/sys/devices/system/cpu", "cpu"},
                                    {"/proc/cpuinfo", "cpuinfo"}};
constexpr char topology[] = "/topology";
constexpr char status[] = "/proc/self/status";

// As Linux writes a mask: words of 32 bits, the highest first.
void print_mask(FILE* to, const std::uint64_t* words, std::uint32_t bits) {
  for (std::uint32_t word = (bits + 31) / 32; word-- > 0;) {
    const auto half = static_cast<std::uint32_t>(words[word / 2] >> (word % 2 * 32));
    fprintf(to, "%08x%s", half, word == 0 ? "\n" : ",");
  }
}

void print_set(FILE* to, const Processors& set) {
  char text[binding_text_max];
  write_set(set, text);
  fprintf(to, "%s\n", text);
}

// "/cpu7", of a processor itself.
bool is_processor(const char* rest) {
  constexpr char name[] = "/cpu";
  if (strncmp(rest, name, sizeof name - 1) != 0) return false;
  rest += sizeof name - 1;
  const std::size_t digits = strspn(rest, "0123456789");
  return digits != 0 && (rest[digits] == 0 || strcmp(rest + digits, "/") == 0);
}

// MPI libraries look in each rank for the sizes of caches, which stay this computer's: only who asks for all, for a
// processor or for where it is has the files made.
bool has_processor_files(const char* folder, const char* rest) {
  const bool asked = *rest == 0 || strcmp(rest, "/") == 0 || is_processor(rest) || strstr(rest, topology) != nullptr;
  return asked && make_processor_files(folder);
}

FILE* own_status(FILE* real_status) {
  const int file = memfd_create("status", MFD_CLOEXEC);
  FILE* const to = file >= 0 ? fdopen(file, "w+") : nullptr;
  if (to == nullptr) {
    if (file >= 0) close(file);
    return real_status;
  }
  const Processors processors = processors_of(0);
  Processors memories;
  memories.words[0] = node_shape()->all_domains();
  char line[1024];
  while (fgets(line, sizeof line, real_status) != nullptr) {
    if (strncmp(line, "Cpus_allowed:", 13) == 0) {
      fprintf(to, "Cpus_allowed:\t");
      print_mask(to, processors.words, node_shape()->processors());
    } else if (strncmp(line, "Cpus_allowed_list:", 18) == 0) {
      fprintf(to, "Cpus_allowed_list:\t");
      print_set(to, processors);
    } else if (strncmp(line, "Mems_allowed:", 13) == 0) {
      fprintf(to, "Mems_allowed:\t");
      print_mask(to, memories.words, domains_max);
    } else if (strncmp(line, "Mems_allowed_list:", 18) == 0) {
      fprintf(to, "Mems_allowed_list:\t");
      print_set(to, memories);
    } else {
      fputs(line, to);
    }
  }
  fclose(real_status);
  fflush(to);
  rewind(to);
  return to;
}

FILE* open_file(real::fopen_t* function, const char* path, const char* mode) {
  char room[path_max];
  FILE* const file = function(on_node(path, room), mode);
  return file != nullptr && is_own_status(path) ? own_status(file) : file;
}

}  // namespace

const char* on_node(const char* path, char (&room)[path_max]) {
  if (path == nullptr || *path != '/' || node_shape() == nullptr) return path;
  for (const auto& [place, name] : shown) {
    const std::size_t length = strlen(place);
    if (strncmp(path, place, length) != 0 || (path[length] != 0 && path[length] != '/')) continue;
    const char* const folder = getenv("DRYFLY_NODE_FILES");
    if (folder == nullptr) return path;
    const char* const rest = path + length;
    if (strcmp(name, "cpu") == 0 && !has_processor_files(folder, rest)) return path;
    const int wanted = snprintf(room, sizeof room, "%s/%s%s", folder, name, rest);
    return wanted < static_cast<int>(sizeof room) ? room : path;
  }
  return path;
}

bool is_own_status(const char* path) { return path != nullptr && strcmp(path, status) == 0 && node_shape() != nullptr; }

int open_own_status(int flags) {
  FILE* const file = fopen(status, "r");
  if (file == nullptr) return -1;
  const int copy = fcntl(fileno(file), (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  fclose(file);
  return copy;
}

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT FILE* fopen(const char* path, const char* mode) { return open_file(real::fopen(), path, mode); }
DRYFLY_EXPORT FILE* fopen64(const char* path, const char* mode) { return open_file(real::fopen(), path, mode); }

DRYFLY_EXPORT DIR* opendir(const char* path) {
  char room[path_max];
  return real::opendir()(on_node(path, room));
}

// How many processors there are, those that are not the job's too, wherever the process is bound.
DRYFLY_EXPORT long sysconf(int name) noexcept {
  const bool asks = name == _SC_NPROCESSORS_CONF || name == _SC_NPROCESSORS_ONLN;
  return asks && node_shape() != nullptr ? node_shape()->processors() : real::sysconf()(name);
}

// Of these std::thread::hardware_concurrency asks one.
DRYFLY_EXPORT int get_nprocs() noexcept { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }
DRYFLY_EXPORT int get_nprocs_conf() noexcept { return static_cast<int>(sysconf(_SC_NPROCESSORS_CONF)); }
