#include <algorithm>

#include "core/motif/job/job.hpp"
#include "core/motif/schedule/collective.hpp"
#include "core/motif/schedule/schedule.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint64_t no_place = ~std::uint64_t{0};

// A number of its own for each group as long as there are numbers; those that share one seldom overlap.
Communicator group_of(const Schedule& schedule, std::uint32_t group) {
  if (group == 0) return {0, 1, schedule.ranks(), 0};
  return {schedule.groups[group], 1 + (group - 1) % (Communicator::numbers - 1)};
}

// `phases`: their numbers in the job. `places`: the instruction that each rank is at; no_place when it has ended.
Task play(Rank& me, const Schedule& schedule, const std::vector<std::uint16_t>& phases,
          LargeVector<std::uint64_t>& places, const Selection* library) {
  const Listing list = schedule.lists[schedule.list_of[me.id()]];
  std::vector<Pending> slots(list.slots);
  for (std::uint64_t index = list.first; index < list.last; ++index) {
    places[me.id()] = index;
    const Instruction& one = schedule.instructions[index];
    const std::uint32_t peer = schedule.peer(me.id(), one);
    const Bytes size{one.size};
    switch (one.verb()) {
      case Verb::compute:
        co_await me.compute(Duration{one.size});
        break;
      case Verb::isend:
        slots[one.slot] = me.isend(peer, one.tag, size);
        break;
      case Verb::irecv:
        slots[one.slot] = me.irecv(peer, one.tag);
        break;
      case Verb::put:
        slots[one.slot] = me.put(peer, size);
        break;
      case Verb::get:
        slots[one.slot] = me.get(peer, size);
        break;
      case Verb::send:
        co_await me.send(peer, one.tag, size);
        break;
      case Verb::recv:
        co_await me.recv(peer, one.tag);
        break;
      case Verb::wait: {
        const Pending second = one.peer == no_slot ? Pending{} : slots[one.peer];
        co_await me.wait(slots[one.slot], second);
        break;
      }
      case Verb::wait_all:
        co_await me.wait_all();
        break;
      case Verb::phase:
        me.enter(phases[one.peer]);
        break;
      default:
        co_await run_verb(me, one.verb(), group_of(schedule, one.slot), one.peer, size, library);
    }
  }
  co_await me.wait_all();
  places[me.id()] = no_place;
}

Task nothing(Rank&) { co_return; }

}  // namespace

void play_all(Job& job, const Schedule& schedule, const Selection* library) {
  std::vector<std::uint16_t> phases;
  for (const std::string& name : schedule.phases) phases.push_back(name.empty() ? 0 : job.phases().named(name));
  LargeVector<std::uint64_t> places(schedule.ranks(), no_place);
  try {
    job.run([&](Rank& me) {
      return me.id() < schedule.ranks() ? play(me, schedule, phases, places, library) : nothing(me);
    });
  } catch (const Standstill&) {
    const auto waits =
        std::find_if(places.begin(), places.end(), [](std::uint64_t place) { return place != no_place; });
    DRYFLY_CHECK(waits != places.end());
    fail_at(schedule, static_cast<std::uint32_t>(waits - places.begin()), *waits,
            "the ranks wait for each other for ever, this one in this call");
  }
}

}  // namespace dryfly::motif
