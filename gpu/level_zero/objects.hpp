// What Level Zero's handles lead to: one of these objects each. Of which type it is, each call looks at.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "gpu/level_zero/types.hpp"
#include "gpu/settings.hpp"
#include "gpu/timeline.hpp"

namespace dryfly::gpu::level_zero {

enum class Type : std::uint64_t {
  driver = 0x6472'7966'6c79'0001,
  context,
  device,
  queue,
  list,
  pool,
  event,
  fence,
};
struct Object {
  Type type;
};
template <class Each>
bool is(const Each* object) {
  return object != nullptr && object->type == Each::own;
}
template <class Each>
Each* make() {
  void* const room = calloc(1, sizeof(Each));
  if (room == nullptr) return nullptr;
  auto* const made = new (room) Each{};
  made->type = Each::own;
  return made;
}
template <class Each>
void unmake(Each* object) {
  object->type = {};
  free(object);
}

struct Driver : Object {
  static constexpr Type own = Type::driver;
};
struct Context : Object {
  static constexpr Type own = Type::context;
};
struct Device : Object {
  static constexpr Type own = Type::device;
  int first;  // of the runtime's devices, and how many it is a name for
  int count;
  bool is_tile;  // which it is of `root`
  Device* root;  // or null
  Device* tiles[devices_max];
  int tile_count;
};
struct Signal : Object {
  static constexpr Type own = Type::event;
  Event* event;
};
struct Pool : Object {
  static constexpr Type own = Type::pool;
  std::uint32_t count;
  Context* context;
};
struct Fence : Object {
  static constexpr Type own = Type::fence;
  Event* event;
};
struct Queue : Object {
  static constexpr Type own = Type::queue;
  Device* device;
  Stream* stream;
  QueueDescription description;
};
struct Command;
struct List : Object {
  static constexpr Type own = Type::list;
  Context* context;
  Device* device;
  Stream* stream;  // null: it is to be executed by a queue
  QueueDescription description;
  bool closed;
  Command* commands;
  std::size_t count;
  std::size_t room;
};

}  // namespace dryfly::gpu::level_zero
