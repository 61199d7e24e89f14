#include "preload/node/system_calls.hpp"

#include <sys/syscall.h>

#include "preload/node/affinity_calls.hpp"
#include "preload/node/memory_calls.hpp"

namespace dryfly::preload {

namespace {

template <typename Type>
Type* pointer(long argument) {
  return reinterpret_cast<Type*>(argument);
}

}  // namespace

bool answers_for_node(long number, const long (&a)[6], const void* caller, long& result) {
  switch (number) {
    case SYS_sched_setaffinity:
    case SYS_sched_getaffinity:
    case SYS_getcpu:
    case SYS_mbind:
    case SYS_set_mempolicy:
    case SYS_get_mempolicy:
    case SYS_move_pages:
    case SYS_migrate_pages:
      break;
    default:
      return false;
  }
  if (node_shape() == nullptr) return false;
  const auto thread = static_cast<std::int32_t>(a[0]);
  const auto bytes = static_cast<std::size_t>(a[1]);
  switch (number) {
    case SYS_sched_setaffinity:
      result = set_affinity(thread, bytes, pointer<const unsigned char>(a[2]), caller);
      break;
    case SYS_sched_getaffinity:
      result = get_affinity(thread, bytes, pointer<unsigned char>(a[2]));
      break;
    case SYS_getcpu:
      result = get_processor(pointer<std::uint32_t>(a[0]), pointer<std::uint32_t>(a[1]));
      break;
    case SYS_mbind:
      result = place_memory(a[0], static_cast<std::uint64_t>(a[1]), static_cast<int>(a[2]),
                            pointer<const std::uint64_t>(a[3]), static_cast<std::uint64_t>(a[4]));
      break;
    case SYS_set_mempolicy:
      result = set_memory_policy(static_cast<int>(a[0]), pointer<const std::uint64_t>(a[1]),
                                 static_cast<std::uint64_t>(a[2]));
      break;
    case SYS_get_mempolicy:
      result = get_memory_policy(pointer<int>(a[0]), pointer<std::uint64_t>(a[1]), static_cast<std::uint64_t>(a[2]),
                                 a[3], static_cast<std::uint64_t>(a[4]));
      break;
    case SYS_move_pages:
      result = move_pages_virtually(static_cast<std::uint64_t>(a[1]), pointer<const long>(a[2]),
                                    pointer<const int>(a[3]), pointer<int>(a[4]));
      break;
    default:  // migrate_pages: all pages are there
      result = 0;
      break;
  }
  return true;
}

}  // namespace dryfly::preload
