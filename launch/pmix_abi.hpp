// The part of OpenPMIx's binary interface that launch/pmix.cpp uses, as the PMIx standard (4.1, chapter 3) lays it
// down: it has been the same from 3.2, which Open MPI 4.1 has inside, to 5.0. Declared here because wheels come without
// its headers, and one build has to serve every library that a user adds.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace dryfly::launch::pmix {

using Status = int;
inline constexpr Status success = 0;
inline constexpr Status operation_succeeded = -157;
inline constexpr Status not_supported = -47;
inline constexpr Status not_found = -46;

inline constexpr std::size_t longest_name = 255;
inline constexpr std::size_t longest_key = 511;
inline constexpr std::uint32_t rank_wildcard = 0xfffffffeU;

enum class Type : std::uint16_t { boolean = 1, text = 3, uint16 = 13, uint32 = 14, info = 24, array = 39, rank = 40 };

struct Process {
  char name_space[longest_name + 1];
  std::uint32_t rank;
};

struct Array {
  Type type;
  std::size_t size;
  void* elements;
};

struct Value {
  Type type;
  union {
    bool flag;
    const char* text;
    std::uint16_t uint16;
    std::uint32_t uint32;
    Array* array;
    std::uint64_t room[3];  // of the largest member, an environment variable
  };
};
static_assert(sizeof(Value) == 32);

struct Info {
  char key[longest_key + 1];
  std::uint32_t flags;
  Value value;
};
static_assert(sizeof(Info) == 552);

using Done = void (*)(Status status, void* data);
using Release = void (*)(void* data);
using Exchanged = void (*)(Status status, const char* data, std::size_t bytes, void* context, Release, void* released);

// The calls that the library makes to its host; those that this host does not serve stay null.
struct Host {
  Status (*connected)(const Process*, void* object, Done, void* data);
  Status (*finalized)(const Process*, void* object, Done, void* data);
  Status (*abort)(const Process*, void* object, int status, const char* message, Process*, std::size_t, Done, void*);
  Status (*fence)(const Process*, std::size_t, const Info*, std::size_t, char* data, std::size_t bytes, Exchanged,
                  void* context);
  Status (*direct_modex)(const Process*, const Info*, std::size_t, Exchanged, void* context);
  void* unserved[64];  // later versions append calls
};

// PMIx_server_*.
struct Calls {
  Status (*init)(Host*, Info*, std::size_t);
  Status (*finalize)();
  Status (*register_nspace)(const char* name_space, int local_processes, Info*, std::size_t, Done, void* data);
  Status (*register_client)(const Process*, uid_t, gid_t, void* object, Done, void* data);
  Status (*setup_fork)(const Process*, char*** environment);
};

}  // namespace dryfly::launch::pmix
