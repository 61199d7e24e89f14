#include "provider/operation_record.hpp"

#include <rdma/fabric.h>
#include <stdio.h>

#include "provider/cq.hpp"
#include "rank/record_file.hpp"

namespace dryfly::provider {

namespace {

constinit rank::RecordFile<OperationRecord> file{"the operations of a rank", "operations", "dfops001"};
constinit bool asked = false;

// Opened with the first operation.
bool is_on(const rank::Channel& channel) {
  if (asked) return file.is_open();
  asked = true;
  char rank[16] = {};
  snprintf(rank, sizeof rank, "%u", channel.rank());
  return file.open("DRYFLY_OPERATION_RECORD", rank);
}

bool is_tagged(wire::CommandKind kind) {
  return kind == wire::CommandKind::tagged_send || kind == wire::CommandKind::tagged_receive;
}

// False: of no interest.
bool kind_of(wire::CommandKind command, RecordedKind& kind) {
  switch (command) {
    case wire::CommandKind::send:
    case wire::CommandKind::tagged_send:
      kind = RecordedKind::send;
      return true;
    case wire::CommandKind::receive:
    case wire::CommandKind::tagged_receive:
    case wire::CommandKind::receive_claimed:
      kind = RecordedKind::receive;
      return true;
    case wire::CommandKind::write:
      kind = RecordedKind::write;
      return true;
    case wire::CommandKind::read:
      kind = RecordedKind::read;
      return true;
    case wire::CommandKind::atomic:
    case wire::CommandKind::fetch_atomic:
    case wire::CommandKind::compare_atomic:
      kind = RecordedKind::atomic;
      return true;
    default:
      return false;
  }
}

}  // namespace

void record_command(const rank::Channel& channel, const wire::Command& command) {
  OperationRecord one;
  if (!is_on(channel) || !kind_of(command.kind, one.kind)) return;
  one.at_ps = command.at_ps;
  one.operation = command.context;
  one.bytes = command.length;
  if (is_tagged(command.kind)) one.tag = command.tag;
  one.peer = wire::address_rank(command.peer);
  file.add(one);
}

void record_completion(const rank::Channel& channel, const Completion& completion) {
  if (!is_on(channel)) return;
  OperationRecord one;
  one.at_ps = channel.now();
  one.operation = completion.operation;
  one.bytes = completion.length;
  if ((completion.flags & FI_TAGGED) != 0) one.tag = completion.tag;
  one.peer = wire::address_rank(completion.source);
  if ((completion.flags & FI_RECV) != 0) {
    one.kind = RecordedKind::arrived;
  } else {
    one.kind = (completion.flags & FI_SEND) != 0 ? RecordedKind::sent : RecordedKind::done;
  }
  file.add(one);
}

void flush_operation_record() { file.flush(); }

}  // namespace dryfly::provider
