#include "gpu/pools.hpp"

#include <stdlib.h>
#include <string.h>

#include "gpu/times.hpp"

namespace dryfly::gpu {

namespace {

std::uint64_t pieces(std::uint64_t bytes, std::uint64_t piece) { return (bytes + piece - 1) / piece * piece; }

}  // namespace

void Pools::open(int devices, Memory& memory, Timeline& timeline, Waits& waits) {
  memory_ = &memory;
  timeline_ = &timeline;
  waits_ = &waits;
  devices_ = devices;
  for (int i = 0; i < devices; ++i) {
    pools_[i] = {};
    pools_[i].taken = true;
    pools_[i].device = i;
    for (int& each : pools_[i].reuse) each = 1;
    current_[i] = &pools_[i];
  }
}

MemoryPool* Pools::known(MemoryPool* pool) const {
  const bool inside = pool >= pools_ && pool < pools_ + most;
  return inside && pool->taken ? pool : nullptr;
}

MemoryPool* Pools::create(int device) {
  for (int i = devices_; i < most; ++i) {
    if (pools_[i].taken || pools_[i].used != 0) continue;
    pools_[i] = pools_[device];
    MemoryPool& made = pools_[i];
    made.threshold = made.reserved = made.most_reserved = made.used = made.most_used = 0;
    for (int& each : made.reuse) each = 1;
    return &made;
  }
  return nullptr;
}

bool Pools::destroy(MemoryPool& pool) {
  if (&pool < pools_ + devices_) return false;
  pool.taken = false;
  for (int i = 0; i < devices_; ++i) {
    if (current_[i] == &pool) current_[i] = &pools_[i];
  }
  return true;
}

Allocation* Pools::find(const Leaving& leaving) const { return memory_->device(leaving.device).at(leaving.start); }

void Pools::drop(std::size_t index) {
  --leaving_count_;
  memmove(leaving_ + index, leaving_ + index + 1, (leaving_count_ - index) * sizeof *leaving_);
}

void Pools::settle(std::uint64_t now_ps) {
  for (std::size_t i = leaving_count_; i > 0; --i) {
    Leaving& one = leaving_[i - 1];
    if (one.is_held && !waits_->holds(*one.stream)) {
      one.is_held = false;
      one.at_ps = timeline_->end_of(*one.stream);
    }
    if (one.is_held || one.at_ps > now_ps) continue;
    memory_->device(one.device).free(one.start);
    drop(i - 1);
  }
}

bool Pools::take(MemoryPool& pool, std::uint64_t bytes, const Stream& stream, std::uint64_t now_ps,
                 std::uint64_t& start, bool& reserves) {
  settle(now_ps);
  const std::uint8_t number = static_cast<std::uint8_t>(&pool - pools_ + 1);
  Allocation* found = nullptr;
  for (std::size_t i = 0; i < leaving_count_ && found == nullptr; ++i) {
    Allocation* const one = find(leaving_[i]);
    if (leaving_[i].stream != &stream || one->pool != number || one->bytes != bytes) continue;
    found = one;
    found->leaving = false;
    start = found->start;
    drop(i);
  }
  if (found == nullptr) {
    if (!memory_->device(pool.device).allocate(bytes, start)) return false;
    memory_->device(pool.device).at(start)->pool = number;
  }
  pool.used += bytes;
  pool.most_used = later(pool.most_used, pool.used);
  reserves = pool.used > pool.reserved;
  if (reserves) pool.reserved = pieces(pool.used, piece_bytes);
  pool.most_reserved = later(pool.most_reserved, pool.reserved);
  return true;
}

bool Pools::give_back(Allocation& allocation, int device, const Stream* stream, std::uint64_t now_ps) {
  if (leaving_count_ == leaving_room_) {
    const std::size_t room = leaving_room_ == 0 ? 64 : 2 * leaving_room_;
    auto* more = static_cast<Leaving*>(realloc(leaving_, room * sizeof *leaving_));
    if (more == nullptr) return false;
    leaving_ = more;
    leaving_room_ = room;
  }
  if (allocation.pool != 0) pools_[allocation.pool - 1].used -= allocation.bytes;
  allocation.leaving = true;
  Leaving& one = leaving_[leaving_count_++];
  one = {};
  one.start = allocation.start;
  one.device = device;
  one.stream = stream;
  if (stream != nullptr) {
    one.is_held = waits_->holds(*stream);
    one.at_ps = timeline_->end_of(*stream);
  }
  settle(now_ps);
  return true;
}

void Pools::release(MemoryPool& pool, std::uint64_t keep) {
  const std::uint64_t kept = later(pieces(pool.used, piece_bytes), keep / piece_bytes * piece_bytes);
  if (pool.reserved > keep && kept < pool.reserved) pool.reserved = kept;
}

void Pools::synchronised(std::uint64_t now_ps) {
  settle(now_ps);
  for (MemoryPool& pool : pools_) {
    if (pool.reserved != 0) release(pool, pool.threshold);
  }
}

void Pools::trim(MemoryPool& pool, std::uint64_t keep, std::uint64_t now_ps) {
  settle(now_ps);
  release(pool, keep);
}

bool Pools::read(const MemoryPool& pool, PoolAttribute attribute, void* value) const {
  const auto say = [value](std::uint64_t number) {
    memcpy(value, &number, sizeof number);
    return true;
  };
  switch (attribute) {
    case PoolAttribute::threshold:
      return say(pool.threshold);
    case PoolAttribute::reserved:
      return say(pool.reserved);
    case PoolAttribute::most_reserved:
      return say(pool.most_reserved);
    case PoolAttribute::used:
      return say(pool.used);
    case PoolAttribute::most_used:
      return say(pool.most_used);
    default:
      break;
  }
  if (attribute < PoolAttribute::reuse_first || attribute > PoolAttribute::reuse_last) return false;
  memcpy(value, &pool.reuse[static_cast<int>(attribute) - 1], sizeof *pool.reuse);
  return true;
}

// Marks of the most there was can be set back to what is there, and to nothing else.
bool Pools::write(MemoryPool& pool, PoolAttribute attribute, const void* value) {
  if (attribute >= PoolAttribute::reuse_first && attribute <= PoolAttribute::reuse_last) {
    memcpy(&pool.reuse[static_cast<int>(attribute) - 1], value, sizeof *pool.reuse);
    return true;
  }
  std::uint64_t number = 0;
  memcpy(&number, value, sizeof number);
  if (attribute == PoolAttribute::threshold) {
    pool.threshold = number;
    return true;
  }
  if (number != 0) return false;
  if (attribute == PoolAttribute::most_reserved) {
    pool.most_reserved = pool.reserved;
    return true;
  }
  if (attribute != PoolAttribute::most_used) return false;
  pool.most_used = pool.used;
  return true;
}

}  // namespace dryfly::gpu
