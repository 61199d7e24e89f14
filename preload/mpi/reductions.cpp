#include "preload/mpi/reductions.hpp"

#include <stdio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/clock/software.hpp"
#include "preload/mpi/datatypes.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

struct Builtin {
  const char* name;
  const char* open_mpi;  // the symbol whose address it is there
  long mpich;
  long standard;
};
constexpr Builtin operations[] = {
    {"MPI_SUM", "ompi_mpi_op_sum", 0x58000003, 0x21},       {"MPI_MIN", "ompi_mpi_op_min", 0x58000002, 0x22},
    {"MPI_MAX", "ompi_mpi_op_max", 0x58000001, 0x23},       {"MPI_PROD", "ompi_mpi_op_prod", 0x58000004, 0x24},
    {"MPI_BAND", "ompi_mpi_op_band", 0x58000006, 0x28},     {"MPI_BOR", "ompi_mpi_op_bor", 0x58000008, 0x29},
    {"MPI_BXOR", "ompi_mpi_op_bxor", 0x5800000a, 0x2a},     {"MPI_LAND", "ompi_mpi_op_land", 0x58000005, 0x30},
    {"MPI_LOR", "ompi_mpi_op_lor", 0x58000007, 0x31},       {"MPI_LXOR", "ompi_mpi_op_lxor", 0x58000009, 0x32},
    {"MPI_MINLOC", "ompi_mpi_op_minloc", 0x5800000b, 0x38}, {"MPI_MAXLOC", "ompi_mpi_op_maxloc", 0x5800000c, 0x39},
};

long handle_of(const Builtin& operation) {
  switch (abi()) {
    case Abi::standard:
      return operation.standard;
    case Abi::open_mpi:
      return address_of(operation.open_mpi);
    case Abi::mpich:
      break;
  }
  return operation.mpich;
}

// Null for an operation of the program's own.
const char* name_of(long handle) {
  for (const Builtin& operation : operations) {
    if (handle_of(operation) == handle) return operation.name;
  }
  return nullptr;
}

struct TypeName {
  char text[256] = {};
  explicit TypeName(long datatype) {
    int length = 0;
    reinterpret_cast<int (*)(long, char*, int*)>(find_pmpi("Type_get_name"))(datatype, text, &length);
  }
};

std::uint32_t ask(long datatype, long operation) {
  const char* name = name_of(operation);
  return name != nullptr ? reduction_scale(TypeName(datatype).text, name) : rank::programs_reduction;
}

// The last one is nearly always asked for again.
std::uint32_t reduction_cost(long datatype, long operation) {
  static constinit std::atomic<long> known_datatype{0};
  static constinit std::atomic<long> known_operation{0};
  static constinit std::atomic<std::uint32_t> known{0};
  if (known_datatype.load(std::memory_order_relaxed) == datatype &&
      known_operation.load(std::memory_order_relaxed) == operation && operation != 0) {
    return known.load(std::memory_order_relaxed);
  }
  const std::uint32_t cost = ask(datatype, operation);
  known.store(cost, std::memory_order_relaxed);
  known_datatype.store(datatype, std::memory_order_relaxed);
  known_operation.store(operation, std::memory_order_relaxed);
  return cost;
}

}  // namespace

void describe_data(const Shape& shape, int operation, const long* words) {
  rank::Software& software = dryfly_self.software;
  software.block.store(shape.datatype >= 0 ? block_of(words[shape.datatype]) : 0, std::memory_order_relaxed);
  if (operation < 0) {
    software.reduction_scale.store(0, std::memory_order_relaxed);
    return;
  }
  const long datatype = handle(words[operation - 1]);
  const long reduces_by = handle(words[operation]);
  software.reduction_scale.store(reduction_cost(datatype, reduces_by), std::memory_order_relaxed);
  if (const char* name = name_of(reduces_by); software_is_recorded() && name != nullptr) {
    record_reduction(TypeName(datatype).text, name, bytes_of(shape, words));
  }
}

}  // namespace dryfly::preload
