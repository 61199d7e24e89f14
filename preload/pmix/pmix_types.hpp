// The structures of PMIx's interface that the preload reads and makes: the PMIx standard's (4.1, chapter 3).
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::preload::pmix {

inline constexpr int success = 0;
inline constexpr int not_supported = -47;

inline constexpr std::uint16_t size_type = 4;
inline constexpr std::uint16_t byte_object = 27;
inline constexpr std::uint16_t array_type = 39;

inline constexpr std::size_t longest_name = 255;
inline constexpr std::size_t longest_key = 511;

struct Process {
  char name_space[longest_name + 1];
  std::uint32_t rank;
};

struct Array {
  std::uint16_t type;
  std::size_t size;
  void* elements;
};

struct Value {
  std::uint16_t type;
  union {
    struct {
      char* bytes;
      std::size_t size;
    } object;
    std::size_t number;
    Array* array;
    std::uint64_t room[3];  // of the largest member
  };
};
static_assert(sizeof(Value) == 32);

struct Info {
  char key[longest_key + 1];
  std::uint32_t flags;
  Value value;
};
static_assert(sizeof(Info) == 552);

// Of the PMIx below the MPI library, which Python loads for itself alone: RTLD_NEXT misses it there.
void* next(const char* name);
bool own_name_space(const Process& process);

}  // namespace dryfly::preload::pmix
