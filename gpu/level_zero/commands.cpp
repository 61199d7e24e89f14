#include "gpu/level_zero/commands.hpp"

#include <stdlib.h>

#include "gpu/level_zero/calls.hpp"

namespace dryfly::gpu::level_zero {

int perform(Stream* stream, const Device& device, const Command& command) {
  const On on(device.first);
  switch (command.kind) {
    case Command::copy:
      return code_of(streams().copy(command.to, command.from, command.rows, stream, Returning::at_once));
    case Command::fill:
      return code_of(
          streams().fill(command.to, command.pattern, Rows{command.rows.width, 1, 0, 0}, stream, Returning::at_once));
    case Command::kernel:
      return code_of(launch(*command.host_kernel, stream));
    case Command::wait:
      if (!streams().is_recorded(command.event)) return invalid_synchronization_object;
      return code_of(streams().wait(stream, command.event));
    case Command::signal:
      return code_of(streams().signal(command.event, stream));
    case Command::reset:
      return code_of(streams().reset(command.event));
  }
  return invalid_argument;
}

int add(List& list, const Command& command) {
  if (list.stream != nullptr) return perform(list.stream, *list.device, command);
  if (list.count == list.room) {
    const std::size_t room = list.room == 0 ? 16 : 2 * list.room;
    auto* const more = static_cast<Command*>(realloc(list.commands, room * sizeof *list.commands));
    if (more == nullptr) return out_of_host_memory;
    list.commands = more;
    list.room = room;
  }
  list.commands[list.count++] = command;
  return success;
}

int add(List& list, Command::Kind kind, const Signal* signal) {
  Command command{};
  command.kind = kind;
  command.event = signal->event;
  return add(list, command);
}

int append(List* list, const Command* command, Signal* signal, std::uint32_t count, Signal** waits) {
  if (!is(list) || (signal != nullptr && !is(signal))) return invalid_null_handle;
  if (list->closed) return invalid_argument;
  if (count != 0 && waits == nullptr) return invalid_size;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!is(waits[i])) return invalid_null_handle;
    if (const int code = add(*list, Command::wait, waits[i]); code != success) return code;
  }
  if (command != nullptr) {
    if (const int code = add(*list, *command); code != success) return code;
  }
  if (signal != nullptr) {
    if (const int code = add(*list, Command::signal, signal); code != success) return code;
  }
  if (list->stream != nullptr && list->description.mode == synchronous) {
    return code_of(streams().synchronize(list->stream));
  }
  return success;
}

void forget_commands(List& list) {
  for (std::size_t i = 0; i < list.count; ++i) {
    if (list.commands[i].kind == Command::kernel) unmake(list.commands[i].host_kernel);
  }
  list.count = 0;
}

}  // namespace dryfly::gpu::level_zero
