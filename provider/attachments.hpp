// What the memory of this process costs others of its node to attach, who copy long messages out of it: XPMEM, as
// libfabric's shm uses it with FI_SHM_USE_XPMEM where the kernel has it.
//
// Models docs/model/on-node.md#attached-memory: a target attaches the pages of a message when it copies it, and keeps
// them attached, in a cache like that of registrations. It is kept here, by the source, because only the source knows
// where its buffers are; each of its targets has a cache of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "provider/environment.hpp"
#include "provider/registration.hpp"
#include "wire/wire.hpp"

namespace dryfly::provider {

class Attachments {
 public:
  // Not in use unless it is asked for and costs something.
  void open(const wire::RegistrationCosts& costs, const RegistrationSettings& settings);
  void close();

  // What is not longer goes through a segment.
  bool are_in_use(std::size_t length) const { return costs_ != nullptr && length > segment_bytes; }
  // What the target, an end-point's address, has to do before it can copy this buffer, in picoseconds.
  std::uint64_t attach(std::uint32_t target, const void* buffer, std::size_t length);

 private:
  static constexpr std::size_t segment_bytes = 4096;  // SMR_INJECT_SIZE
  struct OfTarget {
    std::uint32_t target;
    Registrations ranges;
    OfTarget* next;
  };

  const wire::RegistrationCosts* costs_;
  const RegistrationSettings* settings_;
  OfTarget* targets_;  // those of a node, so not many
};

}  // namespace dryfly::provider
