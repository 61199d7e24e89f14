#include "preload/mpi/mapped_mpis.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

#include "preload/loaded_part.hpp"
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

using IsOne = bool (*)(const char* path);

// A copy may lie under any name, and tells by its own (DT_SONAME) what it is.
bool is_one(const dl_phdr_info& object, IsOne is) {
  if (object.dlpi_name == nullptr || object.dlpi_name[0] == 0) return false;
  bool found = is(object.dlpi_name);
  for_each_name(object, DT_SONAME, [&](const char* name) { found |= is(name); });
  return found;
}

struct Search {
  MappedMpi* found;
  int room;
  int count;
  IsOne is;
};

int look_for_library(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (search.count == search.room || !is_one(*object, search.is)) return 0;
  MappedMpi& one = search.found[search.count++];
  copy(one.path, sizeof one.path, object->dlpi_name);
  one.by[0] = 0;
  return 0;
}

struct Asked {
  MappedMpi& one;
  IsOne is;
  bool in_its_folder;  // where there are two of one name, each is its neighbours'
};

bool are_neighbours(const char* one, const char* other) {
  const auto length = base_name(one) - one;
  return base_name(other) - other == length && strncmp(one, other, static_cast<std::size_t>(length)) == 0;
}

int look_for_asker(dl_phdr_info* object, std::size_t, void* data) {
  const auto& asked = *static_cast<Asked*>(data);
  MappedMpi& one = asked.one;
  if (object->dlpi_name == nullptr || is_one(*object, asked.is)) return 0;
  if (asked.in_its_folder && !are_neighbours(object->dlpi_name, one.path)) return 0;
  for_each_name(*object, DT_NEEDED, [&](const char* needed) {
    if (one.by[0] != 0 || strcmp(needed, base_name(one.path)) != 0) return;
    copy(one.by, sizeof one.by, object->dlpi_name[0] != 0 ? object->dlpi_name : "the program");
  });
  return one.by[0] != 0 ? 1 : 0;
}

int mapped(MappedMpi* found, int room, IsOne is, bool by_neighbours) {
  Search search{found, room, 0, is};
  dl_iterate_phdr(look_for_library, &search);
  for (int i = 0; i < search.count; ++i) {
    MappedMpi& one = found[i];
    Asked asked{one, is, by_neighbours};
    dl_iterate_phdr(look_for_asker, &asked);
    for (int at = 0; at < opened_count && one.by[0] == 0; ++at) {
      if (strcmp(opened[at].name, base_name(one.path)) == 0) copy(one.by, sizeof one.by, opened[at].by);
    }
    if (one.by[0] == 0) copy(one.by, sizeof one.by, "a library of the program");
  }
  return search.count;
}

bool is_open_pal(const char* path) { return strncmp(base_name(path), "libopen-pal.so", 14) == 0; }

struct Place {
  std::uintptr_t address;
  bool is_of_one;
};

int look_at_place(dl_phdr_info* object, std::size_t, void* data) {
  auto& place = *static_cast<Place*>(data);
  if (part_with(*object, place.address) == nullptr) return 0;
  place.is_of_one = is_one(*object, is_mpi_library);
  return 1;
}

}  // namespace

bool is_mpi_library(const char* path) {
  const char* const name = base_name(path);
  return strncmp(name, "libmpi.so", 9) == 0 || strncmp(name, "libmpi_abi.so", 13) == 0 ||
         strncmp(name, "libmpich.so", 11) == 0;
}

int mapped_mpis(MappedMpi* found, int room) { return mapped(found, room, is_mpi_library, false); }

int mapped_open_pals(MappedMpi* found, int room) { return mapped(found, room, is_open_pal, true); }

bool is_of_an_mpi(const void* function) {
  Place place{reinterpret_cast<std::uintptr_t>(function), false};
  dl_iterate_phdr(look_at_place, &place);
  return place.is_of_one;
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
