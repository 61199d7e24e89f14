#include "traffic.hpp"

#include <algorithm>

namespace dryfly::hpl {

void Schedule::clear() {
  rounds_.clear();
  next_ = 0;
}

void Schedule::begin_round() { rounds_.emplace_back(); }

void Schedule::send(const double* data, std::int64_t count, int target, int tag, MPI_Comm where) {
  if (count > 0)
    rounds_.back().push_back({const_cast<double*>(data), static_cast<int>(count), target, tag, where, true});
}

void Schedule::receive(double* data, std::int64_t count, int source, int tag, MPI_Comm where) {
  if (count > 0) rounds_.back().push_back({data, static_cast<int>(count), source, tag, where, false});
}

void Schedule::start_next() {
  while (pending_.empty() && next_ < rounds_.size()) {
    for (const Transfer& each : rounds_[next_++]) {
      MPI_Request& request = pending_.emplace_back();
      if (each.is_send)
        MPI_Isend(each.data, each.count, MPI_DOUBLE, each.peer, each.tag, each.where, &request);
      else
        MPI_Irecv(each.data, each.count, MPI_DOUBLE, each.peer, each.tag, each.where, &request);
    }
  }
}

bool Schedule::test() {
  int complete = 1;
  if (!pending_.empty())
    MPI_Testall(static_cast<int>(pending_.size()), pending_.data(), &complete, MPI_STATUSES_IGNORE);
  if (complete == 0) return false;
  pending_.clear();
  start_next();
  return true;
}

void Traffic::start(Schedule& schedule) {
  schedule.start_next();
  if (!schedule.done()) active_.push_back(&schedule);
}

void Traffic::poll() {
  for (Schedule* schedule : active_) schedule->test();
  forget_done();
}

void Traffic::wait(Schedule& schedule) {
  while (!schedule.done()) wait_for_any();
}

void Traffic::wait_for_all() {
  while (!active_.empty()) wait_for_any();
}

void Traffic::wait_for_any() {
  std::vector<MPI_Request> requests;
  for (const Schedule* schedule : active_)
    requests.insert(requests.end(), schedule->pending_.begin(), schedule->pending_.end());
  int index = 0;
  MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index, MPI_STATUS_IGNORE);
  auto request = requests.begin();
  for (Schedule* schedule : active_) {
    const auto count = static_cast<std::ptrdiff_t>(schedule->pending_.size());
    schedule->pending_.assign(request, request + count);
    request += count;
    std::erase(schedule->pending_, MPI_REQUEST_NULL);
    schedule->start_next();
  }
  forget_done();
}

void Traffic::forget_done() {
  std::erase_if(active_, [](const Schedule* schedule) { return schedule->done(); });
}

namespace {

// `first`, `first + step`, ... hand the whole message on, one to the next; `from` is who gives it to the first.
struct Plan {
  Schedule& schedule;
  double* data;
  std::int64_t count;
  int root, size, rank, tag;
  MPI_Comm where;

  int at(int position) const { return (root + position) % size; }  // position 0 is the root
  int position() const { return (rank - root + size) % size; }

  void receive_all_from(int source) {
    schedule.begin_round();
    schedule.receive(data, count, at(source), tag, where);
  }
  void send_all_to(int target) { schedule.send(data, count, at(target), tag, where); }

  // The positions [begin, end) form a chain; the root gives the message to the first of them.
  void chain(int begin, int end) {
    const int me = position();
    if (begin >= end) return;
    if (me == 0) send_all_to(begin);
    if (me < begin || me >= end) return;
    receive_all_from(me == begin ? 0 : me - 1);
    schedule.begin_round();
    if (me + 1 < end) send_all_to(me + 1);
  }

  void alone(int target) {
    if (position() == 0) send_all_to(target);
    if (position() == target) receive_all_from(0);
  }

  // The root and the positions [begin, size): halves of the message go down a tree, then round a ring.
  void spread_and_roll(int begin) {
    const int me = position();
    const int members = size - begin + 1;  // with the root
    if (members < 2 || (me != 0 && me < begin)) return;
    const int mine = me == 0 ? 0 : me - begin + 1;
    const auto who = [&](int member) { return at(member == 0 ? 0 : member + begin - 1); };
    const auto offset = [&](int member) { return count * member / members; };
    for (int low = 0, high = members; high - low > 1;) {
      const int middle = (low + high + 1) / 2;
      double* half = data + offset(middle);
      const std::int64_t length = offset(high) - offset(middle);
      schedule.begin_round();
      if (mine == low) schedule.send(half, length, who(middle), tag, where);
      if (mine == middle) schedule.receive(half, length, who(low), tag, where);
      (mine < middle ? high : low) = middle;
    }
    const int next = (mine + 1) % members, previous = (mine + members - 1) % members;
    for (int round = 0; round + 1 < members; ++round) {
      const int leaves = (mine - round + members) % members, comes = (previous - round + members) % members;
      schedule.begin_round();
      schedule.send(data + offset(leaves), offset(leaves + 1) - offset(leaves), who(next), tag, where);
      schedule.receive(data + offset(comes), offset(comes + 1) - offset(comes), who(previous), tag, where);
    }
  }
};

}  // namespace

void plan_broadcast(Schedule& schedule, Broadcast kind, double* data, std::int64_t count, int root, int tag,
                    MPI_Comm where) {
  Plan plan{schedule, data, count, root, 0, 0, tag, where};
  MPI_Comm_size(where, &plan.size);
  MPI_Comm_rank(where, &plan.rank);
  schedule.clear();
  if (plan.size == 1) return;
  schedule.begin_round();
  const int size = plan.size;
  // In the modified forms the next owner of a panel gets this one first and alone: it has no forwarding to do.
  switch (kind) {
    case Broadcast::ring:
      plan.chain(1, size);
      break;
    case Broadcast::ring_modified:
      plan.alone(1);
      plan.chain(2, size);
      break;
    case Broadcast::two_rings:
      plan.chain(1, (size + 1) / 2);
      plan.chain((size + 1) / 2, size);
      break;
    case Broadcast::two_rings_modified:
      plan.alone(1);
      plan.chain(2, 1 + (size + 1) / 2);
      plan.chain(1 + (size + 1) / 2, size);
      break;
    case Broadcast::long_message:
      plan.spread_and_roll(1);
      break;
    case Broadcast::long_modified:
      plan.alone(1);
      plan.spread_and_roll(2);
      break;
  }
}

}  // namespace dryfly::hpl
