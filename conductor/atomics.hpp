// The arithmetic of RMA atomics, as libfabric defines operations and datatypes (enum fi_op, enum fi_datatype; the
// numbers are libfabric's ABI). Works on copies: the caller moves the target's bytes in and out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly {

// Size of one element, 0 for a type that is not known.
std::size_t atomic_type_size(std::uint8_t type);

// target = target op operand, elementwise. `compare` is null unless the operation is a compare-and-swap or masked
// swap. False when the operation is not defined for the type; target is then untouched.
bool apply_atomic(std::uint8_t op, std::uint8_t type, std::byte* target, const std::byte* operand,
                  const std::byte* compare, std::uint64_t bytes);

}  // namespace dryfly
