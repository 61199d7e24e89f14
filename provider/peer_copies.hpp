// How others of the node find the memory of this process that they copy long messages out of: what they have attached
// of it, by XPMEM, as libfabric's shm uses it with FI_SHM_USE_XPMEM where the kernel has it; and what they have in
// their caches still.
//
// Models docs/model/on-node.md#attached-memory and docs/model/on-node.md#copied-before: a target attaches the pages of
// a message when it copies it, and keeps them attached, in a cache like that of registrations. All of it is kept here,
// by the source, because only the source knows where its buffers are and what is in them; each of its targets has its
// own. Left out: that what a target copies from others takes room in its caches, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/memory/kept_copies.hpp"
#include "provider/environment.hpp"
#include "provider/registration.hpp"
#include "wire/wire.hpp"

namespace dryfly::provider {

class PeerCopies {
 public:
  // Nothing is attached unless that is asked for and costs something.
  void open(const wire::RegistrationCosts& costs, const RegistrationSettings& settings);
  void close();

  // What is not longer goes through a segment, and is written anew each time.
  static bool go_by_memory(std::size_t length) { return length > segment_bytes; }
  bool are_attached() const { return costs_ != nullptr; }
  // What the target, an end-point's address, has to do before it can copy this buffer, in picoseconds.
  std::uint64_t attach(std::uint32_t target, const void* buffer, std::size_t length);
  // Its bytes, of that PlacedMemory::version(), are copied by the target, in whose caches there is room for so many: as
  // KeptCopies::copy().
  std::optional<std::uint64_t> copy(std::uint32_t target, const void* buffer, std::size_t length, std::uint64_t version,
                                    std::uint64_t room);

 private:
  static constexpr std::size_t segment_bytes = 4096;  // SMR_INJECT_SIZE
  struct OfTarget {
    std::uint32_t target;
    Registrations attached;
    KeptCopies kept;
    OfTarget* next;
  };
  OfTarget* of(std::uint32_t target);  // null: there is no memory for it

  const wire::RegistrationCosts* costs_;
  const RegistrationSettings* settings_;
  OfTarget* targets_;  // those of a node, so not many
};

}  // namespace dryfly::provider
