// The structures of PMIx's binary interface, as the PMIx standard (4.1, chapter 3) lays them down: they have been the
// same from 3.2, which Open MPI 4.1 has inside, to 5.0. Declared here because wheels come without its headers, and one
// build has to serve every library that a user adds. The preload reads them in a rank; launch/ fills them in for the
// server.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::pmix {

using Status = int;
inline constexpr Status success = 0;
inline constexpr Status not_found = -46;
inline constexpr Status not_supported = -47;
inline constexpr Status operation_succeeded = -157;

inline constexpr std::size_t longest_name = 255;
inline constexpr std::size_t longest_key = 511;
inline constexpr std::uint32_t rank_wildcard = 0xfffffffeU;

enum class Type : std::uint16_t {
  boolean = 1,
  text = 3,
  size = 4,
  uint16 = 13,
  uint32 = 14,
  info = 24,
  bytes = 27,
  array = 39,
  rank = 40,
};

struct Process {
  char name_space[longest_name + 1];
  std::uint32_t rank;
};

struct Array {
  Type type;
  std::size_t size;
  void* elements;
};

struct Bytes {
  char* first;
  std::size_t size;
};

struct Value {
  Type type;
  union {
    bool flag;
    const char* text;
    std::size_t size;
    std::uint16_t uint16;
    std::uint32_t uint32;
    Bytes bytes;
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

}  // namespace dryfly::pmix
