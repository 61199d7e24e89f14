#include "gpu/level_zero/node.hpp"

#include <pthread.h>
#include <string.h>

#include "gpu/level_zero/calls.hpp"

namespace dryfly::gpu::level_zero {

namespace {

void describe(Node& node) {
  const Settings& here = settings();
  node.driver.type = Driver::own;
  node.context.type = Context::own;
  int gpus = 0;
  for (int i = 0; i < here.devices; ++i) {
    Device& tile = node.tiles[i];
    tile.type = Device::own;
    tile.first = i;
    tile.count = 1;
    const bool begins = i == 0 || here.physical[i] / here.tiles != here.physical[i - 1] / here.tiles;
    Device& gpu = node.gpus[begins ? gpus++ : gpus - 1];
    gpu.type = Device::own;
    if (begins) gpu.first = i;
    ++gpu.count;
    gpu.tiles[gpu.tile_count++] = &tile;
    tile.root = here.hierarchy == Hierarchy::flat ? nullptr : &gpu;
    tile.is_tile = here.hierarchy != Hierarchy::flat;
  }
  // Of a GPU with one tile nothing is shown below it.
  for (int i = 0; i < gpus; ++i) {
    Device& gpu = node.gpus[i];
    if (gpu.tile_count > 1) continue;
    gpu.tiles[0]->root = nullptr;
    gpu.tiles[0]->is_tile = false;
    gpu.tile_count = 0;
  }
  const bool whole = here.hierarchy == Hierarchy::composite;
  node.shown_count = whole ? gpus : here.devices;
  for (int i = 0; i < node.shown_count; ++i) node.shown[i] = whole ? &node.gpus[i] : &node.tiles[i];
}

}  // namespace

Node& node() {
  static Node all{};
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { describe(all); });
  return all;
}

Device* shown_of(const Place& place) {
  if (place.kind != Kind::device || place.device < 0 || place.device >= settings().devices) return nullptr;
  Device& tile = node().tiles[place.device];
  if (settings().hierarchy != Hierarchy::composite) return &tile;
  if (tile.root != nullptr && !place.allocation.whole) return &tile;
  for (int i = 0; i < node().shown_count; ++i) {
    Device& gpu = *node().shown[i];
    if (place.device >= gpu.first && place.device < gpu.first + gpu.count) return &gpu;
  }
  return &tile;
}

void fill_uuid(std::uint8_t (&uuid)[16], int gpu, int tile) {
  memset(uuid, 0, sizeof uuid);
  uuid[0] = vendor & 0xff;
  uuid[1] = vendor >> 8;
  uuid[2] = gpu_max & 0xff;
  uuid[3] = gpu_max >> 8;
  uuid[8] = static_cast<std::uint8_t>(gpu + 1);
  uuid[15] = static_cast<std::uint8_t>(tile);
}

}  // namespace dryfly::gpu::level_zero
