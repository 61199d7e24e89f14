#include "provider/operation.hpp"

#include <stdlib.h>

#include "core/unit/check.hpp"
#include "provider/memory.hpp"

namespace dryfly::provider {

// An id is generation << 32 | index + 1. The index of a record is kept in `next` while it is in use.
Operation* Operations::add(OperationKind kind) {
  if (free_ == 0 && !grow()) return nullptr;
  const std::uint32_t index = free_ - 1;
  Operation& operation = at(index);
  free_ = operation.next;
  const std::uint32_t generation = operation.generation;
  operation = Operation{};
  operation.generation = generation;
  operation.next = index + 1;
  operation.kind = kind;
  return &operation;
}

Operation* Operations::find(OperationId id) {
  const auto number = static_cast<std::uint32_t>(id);
  if (number == 0 || number > slab_count_ * slab_size) return nullptr;
  Operation& operation = at(number - 1);
  const bool alive = operation.kind != OperationKind::free && operation.generation == id >> 32;
  return alive ? &operation : nullptr;
}

OperationId Operations::id_of(const Operation& operation) const {
  return std::uint64_t{operation.generation} << 32 | operation.next;
}

void Operations::remove(Operation& operation) {
  DRYFLY_CHECK(operation.kind != OperationKind::free);
  const std::uint32_t number = operation.next;
  operation.kind = OperationKind::free;
  ++operation.generation;
  operation.next = free_;
  free_ = number;
}

template <class Visit>
void Operations::each(Visit visit) {
  for (std::uint32_t index = 0; index < slab_count_ * slab_size; ++index) visit(at(index));
}

void Operations::remove_all_of(const Endpoint& endpoint) {
  each([&](Operation& operation) {
    if (operation.kind != OperationKind::free && operation.endpoint == &endpoint) remove(operation);
  });
}

Operation* Operations::find_by_context(const Endpoint& endpoint, OperationKind kind, const void* context) {
  Operation* found = nullptr;
  each([&](Operation& operation) {
    if (operation.kind == kind && operation.endpoint == &endpoint && operation.context == context) found = &operation;
  });
  return found;
}

bool Operations::grow() {
  auto** slabs = static_cast<Slab**>(realloc(slabs_, (slab_count_ + 1) * sizeof(Slab*)));
  if (slabs == nullptr) return false;
  slabs_ = slabs;
  auto* slab = allocate<Slab>();
  if (slab == nullptr) return false;
  slabs_[slab_count_] = slab;
  const std::uint32_t first = slab_count_ * slab_size;
  ++slab_count_;
  for (std::uint32_t i = slab_size; i-- > 0;) {
    slab->operations[i].next = free_;
    free_ = first + i + 1;
  }
  return true;
}

}  // namespace dryfly::provider
