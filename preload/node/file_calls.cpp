// Files in which Linux tells programs of a node: libnuma (numactl) reads /sys/devices/system/node and what a process is
// bound to in /proc/self/status. They are told of the simulated node: the first from a folder of the run
// (DRYFLY_NODE_FILES, python/dryfly/case/node_files.py), the second with its lines of processors and memories changed.
// Left out: whoever opens them in another way than by fopen and opendir; hwloc has a file of its own (HWLOC_XMLFILE).
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/export.hpp"
#include "preload/node/binding.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

constexpr char nodes[] = "/sys/devices/system/node";
constexpr char status[] = "/proc/self/status";
constexpr std::size_t path_max = 4096;

// The file of the run in its place; the path itself where there is none.
const char* on_node(const char* path, char (&room)[path_max]) {
  if (path == nullptr || strncmp(path, nodes, sizeof nodes - 1) != 0 || node_shape() == nullptr) return path;
  const char* const folder = getenv("DRYFLY_NODE_FILES");
  const char* const rest = path + sizeof nodes - 1;
  if (folder == nullptr || (*rest != 0 && *rest != '/')) return path;
  if (snprintf(room, sizeof room, "%s%s", folder, rest) >= static_cast<int>(sizeof room)) return path;
  return room;
}

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
  rewind(to);
  return to;
}

FILE* open_file(real::fopen_t* function, const char* path, const char* mode) {
  char room[path_max];
  FILE* const file = function(on_node(path, room), mode);
  const bool is_status = file != nullptr && strcmp(path, status) == 0 && node_shape() != nullptr;
  return is_status ? own_status(file) : file;
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT FILE* fopen(const char* path, const char* mode) { return open_file(real::fopen(), path, mode); }
DRYFLY_EXPORT FILE* fopen64(const char* path, const char* mode) { return open_file(real::fopen(), path, mode); }

DRYFLY_EXPORT DIR* opendir(const char* path) {
  char room[path_max];
  return real::opendir()(on_node(path, room));
}

// How many processors there are, as libnuma asks for it: those that are not the job's too. How many are free, which is
// how others choose a number of threads, is still this computer's.
DRYFLY_EXPORT long sysconf(int name) noexcept {
  if (name == _SC_NPROCESSORS_CONF && node_shape() != nullptr) return node_shape()->processors();
  return real::sysconf()(name);
}
