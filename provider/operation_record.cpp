#include "provider/operation_record.hpp"

#include <errno.h>
#include <fcntl.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provider/cq.hpp"

namespace dryfly::provider {

namespace {

constexpr char format_name[8] = {'d', 'f', 'o', 'p', 's', '0', '0', '1'};
constexpr std::size_t capacity = 512;
constexpr int not_opened = -2;
constexpr int off = -1;

struct Recorder {
  int file = not_opened;
  std::size_t count = 0;
  OperationRecord records[capacity] = {};
  char path[1024] = {};
};
constinit Recorder recorder;

bool write_all(const void* bytes, std::size_t length) {
  const char* at = static_cast<const char*>(bytes);
  while (length > 0) {
    const ssize_t written = write(recorder.file, at, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    length -= static_cast<std::size_t>(written);
  }
  return true;
}

void give_up(const rank::Channel& channel) {
  fprintf(stderr, "dryfly: the operations of rank %u are not recorded: %s: %s\n", channel.rank(), recorder.path,
          strerror(errno));
  if (recorder.file >= 0) {
    ::close(recorder.file);
    unlinkat(AT_FDCWD, recorder.path, 0);
  }
  recorder.file = off;
}

bool is_on(const rank::Channel& channel) {
  if (recorder.file != not_opened) return recorder.file != off;
  recorder.file = off;
  const char* directory = getenv("DRYFLY_CALL_RECORD");
  if (directory == nullptr || *directory == 0) return false;
  const int length = snprintf(recorder.path, sizeof recorder.path, "%s/operations-%u.bin", directory, channel.rank());
  if (length >= static_cast<int>(sizeof recorder.path)) return false;
  recorder.file = ::open(recorder.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (recorder.file < 0 || !write_all(format_name, sizeof format_name)) give_up(channel);
  return recorder.file >= 0;
}

void record(const rank::Channel& channel, const OperationRecord& one) {
  recorder.records[recorder.count++] = one;
  if (recorder.count == capacity) flush_operation_record(channel);
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
  record(channel, one);
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
  record(channel, one);
}

void flush_operation_record(const rank::Channel& channel) {
  if (recorder.file >= 0 && !write_all(recorder.records, recorder.count * sizeof(OperationRecord))) give_up(channel);
  recorder.count = 0;
}

}  // namespace dryfly::provider
