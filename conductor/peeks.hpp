// Whether ranks do nothing but ask for messages that do not come. A library that waits in MPI_Probe asks its NIC again
// and again, and each of these peeks is a command and an event: a job in which that is all that happens never comes to
// rest.
#pragma once

#include <cstdint>

#include "wire/wire.hpp"

namespace dryfly {

class Peeks {
 public:
  static bool is_peek(wire::CommandKind kind) {
    return kind == wire::CommandKind::peek || kind == wire::CommandKind::tagged_peek;
  }

  void commanded(wire::CommandKind kind) { others_ += is_peek(kind) ? 0 : 1; }
  void answered(bool found) { ++(found ? others_ : fruitless_); }

  // That have found nothing.
  std::uint64_t fruitless() const { return fruitless_; }
  // Commands of any other kind, and peeks that have found a message.
  std::uint64_t others() const { return others_; }

 private:
  std::uint64_t fruitless_ = 0;
  std::uint64_t others_ = 0;
};

}  // namespace dryfly
