#include "conductor/memory_regions.hpp"

#include <cerrno>
#include <utility>

namespace dryfly {

using wire::CommandKind;
using wire::EventKind;

void MemoryRegions::open(const OpenCommand& open) {
  const wire::Command& command = open.command;
  any_of_gpus_ |= command.gpu != 0;
  regions_[open.endpoint().value][command.key] =
      Region{command.buffer,  command.length, (command.flags & wire::command_flag::tells) != 0,
             command.counter, command.gpu,    command.pages};
}

void MemoryRegions::close(const OpenCommand& open) { regions_[open.endpoint().value].erase(open.command.key); }

std::uint8_t MemoryRegions::gpu_of(std::uint32_t address, std::uint64_t key) const {
  if (!any_of_gpus_) return 0;
  const Region* region = find(address, key);
  return region == nullptr ? 0 : region->gpu;
}

const MemoryRegions::Region* MemoryRegions::find(std::uint32_t address, std::uint64_t key) const {
  const auto regions = regions_.find(address);
  if (regions == regions_.end()) return nullptr;
  const auto found = regions->second.find(key);
  return found == regions->second.end() ? nullptr : &found->second;
}

// Those of all processes are apart: above a process's names stands its number.
DmaPages MemoryRegions::pages_of(RankId rank, std::uint64_t word) {
  constexpr std::uint32_t process_at = 40;
  const auto named = wire::BufferPages::of(word);
  return {std::uint64_t{rank.value} << process_at | named.page, named.shift, named.kept, named.by_processor};
}

DmaPages MemoryRegions::pages_at(std::uint32_t address, std::uint64_t key, std::uint64_t offset) const {
  const Region* region = find(address, key);
  if (region == nullptr || region->gpu != 0) return {};
  return pages_of(RankId{wire::address_rank(address)}, region->pages).behind(offset);
}

int MemoryRegions::apply(OpenCommand& access) {
  const wire::Command& command = access.command;
  const auto regions = regions_.find(command.peer);
  if (regions == regions_.end()) return EKEYREJECTED;
  const auto found = regions->second.find(command.key);
  if (found == regions->second.end()) return EKEYREJECTED;
  const Region region = found->second;
  const std::uint64_t bytes = bytes_at_target(command);
  if (command.remote_offset > region.length || bytes > region.length - command.remote_offset) return EINVAL;
  const int error = bytes == 0 ? 0 : move_bytes(access, region.base + command.remote_offset);
  if (error != 0) return error;
  triggers_.count(RankId{wire::address_rank(command.peer)}, region.counter);
  if (region.tells) tell(access, EventKind::accessed);
  if ((command.flags & wire::command_flag::has_data) != 0) tell(access, EventKind::written);
  return 0;
}

int MemoryRegions::move_bytes(OpenCommand& access, std::uint64_t address) {
  const RankId target{wire::address_rank(access.command.peer)};
  const CommandKind kind = access.command.kind;
  if (kind == CommandKind::read) return payloads_.read(access, target, address);
  const int error =
      kind == CommandKind::write ? payloads_.write(access, target, address) : payloads_.update(access, target, address);
  outlet_.memory_changed(target);
  news_.changed(target, address, bytes_at_target(access.command));
  return error;
}

void MemoryRegions::tell(const OpenCommand& access, EventKind kind) {
  const wire::Command& command = access.command;
  const RankId target{wire::address_rank(command.peer)};
  PendingEvent pending = EventWriter::news_for(ranks_[target.value], EndpointId{command.peer}, kind);
  pending.event.peer = access.endpoint().value;
  pending.event.key = command.key;
  pending.event.length = bytes_at_target(command);
  pending.event.data = command.data;
  pending.event.offset = command.remote_offset;
  events_.write(target, std::move(pending));
}

}  // namespace dryfly
