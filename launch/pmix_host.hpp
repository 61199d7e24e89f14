// The calls between PMIx's server library and its host, which is launch/pmix.cpp. The structures in them are the
// preload's as well (preload/pmix/pmix_abi.hpp).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "preload/pmix/pmix_abi.hpp"

namespace dryfly::pmix {

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

}  // namespace dryfly::pmix
