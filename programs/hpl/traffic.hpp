// Communication that goes on while something else is computed.
//
// A Schedule is what one process does in one operation: rounds of sends and receives, each round begun when the one
// before it is complete. Broadcasts and row exchanges are such schedules. Traffic moves on all that are under way,
// so that a process which waits for one of them still forwards what passes through it in the others.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace dryfly::hpl {

class Schedule {
 public:
  void clear();
  void begin_round();
  void send(const double* data, std::int64_t count, int target, int tag, MPI_Comm where);
  void receive(double* data, std::int64_t count, int source, int tag, MPI_Comm where);

  bool done() const { return next_ == rounds_.size() && pending_.empty(); }

 private:
  friend class Traffic;

  struct Transfer {
    double* data;
    int count, peer, tag;
    MPI_Comm where;
    bool is_send;
  };

  void start_next();
  bool test();  // true if it has moved on

  std::vector<std::vector<Transfer>> rounds_;
  std::size_t next_ = 0;
  std::vector<MPI_Request> pending_;
};

class Traffic {
 public:
  void start(Schedule& schedule);  // the schedule stays where it is until it is done
  void poll();
  void wait(Schedule& schedule);  // sleeps in MPI until it is done, and moves the others on
  void wait_for_all();
  bool idle() const { return active_.empty(); }

 private:
  void wait_for_any();
  void forget_done();

  std::vector<Schedule*> active_;
};

// What of a broadcast over `size` processes from `root` process `rank` does, in HPL's six ways.
enum class Broadcast { ring, ring_modified, two_rings, two_rings_modified, long_message, long_modified };
constexpr int kBroadcasts = 6;

void plan_broadcast(Schedule& schedule, Broadcast kind, double* data, std::int64_t count, int root, int tag,
                    MPI_Comm where);

}  // namespace dryfly::hpl
