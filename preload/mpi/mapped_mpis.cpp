#include "preload/mpi/mapped_mpis.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

constexpr int most_opened = 8;

struct Opened {
  char name[64];  // without its folder
  char by[1024];
};
// Two threads that open a library at once may lose one of them, which a sentence then lacks.
Opened opened[most_opened];
int opened_count = 0;

const char* base_name(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

void copy(char* to, std::size_t room, const char* text) { snprintf(to, room, "%s", text); }

// The part of a name behind which only the release stands; empty where the name says nothing of it.
const char* family(const char* name) {
  if (strncmp(name, "libmpi.so.40", 12) == 0) return "openmpi";
  if (strncmp(name, "libmpi.so.12", 12) == 0 || strncmp(name, "libmpich.so", 11) == 0) return "mpich";
  return strncmp(name, "libmpi_abi.so", 13) == 0 ? "abi" : "";
}

struct Search {
  MappedMpi* found;
  int room;
  int count;
};

int look_for_library(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (search.count == search.room || object->dlpi_name == nullptr || !is_mpi_library(object->dlpi_name)) return 0;
  MappedMpi& one = search.found[search.count++];
  copy(one.path, sizeof one.path, object->dlpi_name);
  one.by[0] = 0;
  return 0;
}

// The dynamic table of a loaded file, whose addresses the linker has completed.
template <typename Look>
void for_each_name(const dl_phdr_info& object, std::int64_t tag, Look look) {
  const char* names = nullptr;
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
      if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
      const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
      for (; entry->d_tag != DT_NULL; ++entry) {
        if (pass == 0 && entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
        if (pass == 1 && entry->d_tag == tag) look(names + entry->d_un.d_val);
      }
    }
    // The kernel's own object is as it was linked, and needs nothing.
    if (names == nullptr || reinterpret_cast<std::uintptr_t>(names) < object.dlpi_addr) return;
  }
}

int look_for_asker(dl_phdr_info* object, std::size_t, void* data) {
  auto& one = *static_cast<MappedMpi*>(data);
  if (object->dlpi_name == nullptr || is_mpi_library(object->dlpi_name)) return 0;
  for_each_name(*object, DT_NEEDED, [&](const char* needed) {
    if (one.by[0] != 0 || strcmp(needed, base_name(one.path)) != 0) return;
    copy(one.by, sizeof one.by, object->dlpi_name[0] != 0 ? object->dlpi_name : "the program");
  });
  return one.by[0] != 0 ? 1 : 0;
}

}  // namespace

bool is_mpi_library(const char* path) {
  const char* const name = base_name(path);
  return strncmp(name, "libmpi.so", 9) == 0 || strncmp(name, "libmpi_abi.so", 13) == 0 ||
         strncmp(name, "libmpich.so", 11) == 0;
}

int mapped_mpis(MappedMpi* found, int room) {
  Search search{found, room, 0};
  dl_iterate_phdr(look_for_library, &search);
  for (int i = 0; i < search.count; ++i) {
    MappedMpi& one = found[i];
    dl_iterate_phdr(look_for_asker, &one);
    for (int at = 0; at < opened_count && one.by[0] == 0; ++at) {
      if (strcmp(opened[at].name, base_name(one.path)) == 0) copy(one.by, sizeof one.by, opened[at].by);
    }
    if (one.by[0] == 0) copy(one.by, sizeof one.by, "a library of the program");
  }
  return search.count;
}

bool is_plain_name(const MappedMpi& mpi) { return strcmp(base_name(mpi.path), "libmpi.so") == 0; }

const char* library_to_open(const char* file, const void* caller) {
  if (file == nullptr || !is_mpi_library(file) || !belongs_to_run()) return file;
  const char* const own = getenv("DRYFLY_LIBMPI");
  char resolved[PATH_MAX];
  const bool has_folder = strchr(file, '/') != nullptr;
  const char* const name = base_name(has_folder && realpath(file, resolved) != nullptr ? resolved : file);
  const bool of_the_run = own != nullptr && *family(name) != 0 && strcmp(family(name), family(base_name(own))) == 0;
  const char* const meant = has_folder && of_the_run ? own : file;
  Dl_info asker{};
  const int place = opened_count;
  if (place < most_opened && dladdr(caller, &asker) != 0 && asker.dli_fname != nullptr) {
    copy(opened[place].name, sizeof opened[place].name, base_name(meant));
    copy(opened[place].by, sizeof opened[place].by, asker.dli_fname);
    opened_count = place + 1;
  }
  return meant;
}

}  // namespace dryfly::preload
