// What Level Zero's command lists keep and its queues do: commands, each of which is work in a stream. Models
// docs/model/gpu.md#commands-of-level-zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/kernels.hpp"
#include "gpu/level_zero/objects.hpp"
#include "gpu/pending.hpp"
#include "gpu/timeline.hpp"

namespace dryfly::gpu::level_zero {

struct Command {
  enum Kind { copy, fill, kernel, wait, signal, reset } kind;
  void* to;
  const void* from;
  Rows rows;
  Pattern pattern;
  Event* event;
  HostKernel* host_kernel;
};

inline constexpr std::uint32_t synchronous = 1;  // ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS

int perform(Stream* stream, const Device& device, const Command& command);

// An immediate list performs it, another keeps it.
int add(List& list, const Command& command);
int add(List& list, Command::Kind kind, const Signal* signal);

// What a call of the list's adds: the command, behind what it waits for and before what it signals. `command`: null for
// what only waits and signals.
int append(List* list, const Command* command, Signal* signal, std::uint32_t count, Signal** waits);

void forget_commands(List& list);

}  // namespace dryfly::gpu::level_zero
