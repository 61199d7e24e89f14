// The record of what a rank asks libfabric for and of when it sees that it is complete, DIRECTORY/operations-N.bin, for
// `dryfly run --record`: an 8-byte name of the format, then an OperationRecord for each, in the byte order of the
// machine and in the order of the rank's clock. From it python/dryfly/skeleton replays a run on another machine.
// Written only when DRYFLY_OPERATION_RECORD names a directory; it costs no virtual time.
//
// Left out: what is complete by a counter only, peeks, and reductions of libfabric's.
#pragma once

#include <cstdint>

#include "provider/operation.hpp"
#include "rank/channel.hpp"

namespace dryfly::provider {

struct Completion;

inline constexpr std::uint64_t untagged = ~std::uint64_t{0};

enum class RecordedKind : std::uint32_t { send, receive, write, read, atomic, arrived, sent, done };

struct OperationRecord {
  std::uint64_t at_ps = 0;  // of a call its end; of a completion before the rank has paid for it
  OperationId operation = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tag = untagged;
  std::uint32_t peer = 0;  // rank; of a receive that is posted nothing
  RecordedKind kind = RecordedKind::send;
};
static_assert(sizeof(OperationRecord) == 40);

void record_command(const rank::Channel& channel, const wire::Command& command);
void record_completion(const rank::Channel& channel, const Completion& completion);
// Writes what has been collected.
void flush_operation_record();

}  // namespace dryfly::provider
