// The flows of long transfers and the shares they have. A stream is what has one turn at its NIC: an unordered
// transfer, or what an ordered flow sends now. Its bytes move evenly, at a share of a link, until its share changes.
//
// When a stream begins it has at once what its pipes have left, and when it ends it leaves what it had; all shares are
// then found anew (Division), for all streams together and not at once but an epoch later, which is short beside what
// the streams take (docs/model/flows.md#epochs). Who is alone on its pipes has all it wants and concerns nobody.
//
// A NIC that sends to nobody but itself is none of that: its streams, while they are few, have equal shares from the
// beginning or the end of each of them on.
//
// A stream fills its minimal ways first, then detours, on which it grows slower (Fan). Of the links of the fabric only
// those are part of the problem that would otherwise have more than they can carry; they are found as it is solved.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/network/fabric/pool.hpp"
#include "core/network/fabric/qos.hpp"
#include "core/network/flow/division.hpp"
#include "core/network/flow/fan.hpp"
#include "core/network/flow/pipes.hpp"
#include "core/network/flow/ways.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::flow {

// What a stream asks for when it begins.
struct Course {
  NicId source;
  NicId target;
  std::uint32_t traffic_class = 0;  // of the profile
  std::uint64_t work_ps = 0;        // what its frames take on a link
  double acknowledgements = 0;      // what those take, as a part of it
};

class Streams {
 public:
  // `detour_speed`: how fast a stream grows on a detour beside one that is on a minimal way.
  Streams(Engine& engine, const Dragonfly& dragonfly, const fabric::QosProfile& profile, const Ways& ways, Pipes& pipes,
          double detour_speed, std::uint64_t key_of_due, std::uint64_t key_of_solving);

  // Returns its number. When so much of its work is done there is an event with key_of_due, and take_due() names it.
  std::uint32_t begin(const Course& course, std::uint64_t stop_ps);
  // At an event with key_of_due, until there is none.
  std::uint32_t take_due();
  // The next such stop, and the stream goes on if it was paused.
  void go_on(std::uint32_t stream, std::uint64_t stop_ps);
  static constexpr std::uint64_t all = UINT64_MAX;
  void end(std::uint32_t stream);
  // Moves nothing until it goes on, and keeps its share.
  void pause(std::uint32_t stream);

  // At an event with key_of_solving.
  void solve();
  // Capacities have changed. Not before so long from now.
  void expect_solving(double least_ps = 0);
  std::uint32_t in_use() const { return streams_.in_use(); }

 private:
  using OnWay = std::array<float, Fan::most_ways>;  // of a share
  struct Stream {
    Course course;
    double limit = 1;  // of its share
    double share = 0;
    double left_ps = 0;  // at base_ps
    std::uint64_t base_ps = 0;
    std::uint64_t stop_ps = 0;        // of its work
    std::uint64_t due_ps = never.ps;  // what counts of due_
    OnWay on_way{};                   // its share of each
    std::uint32_t number = 0;         // of its ways: see Fan
    std::uint32_t ways = 0;
    std::uint32_t place = 0;  // in active_
    bool paused = false;
  };

  static constexpr std::uint8_t tight = 1;        // a link of the fabric that fills up
  static constexpr std::uint8_t may_be_over = 2;  // has more load than it carries, however many streams cross it
  // A pipe in the problem at hand.
  struct Posed {
    double room = 0;                     // for streams, where `room_of` is this problem
    std::uint32_t place = fabric::none;  // in the division
    std::uint32_t room_of = 0;
  };
  // What is asked at every crossing stands by itself, for of a machine's pipes little of anything longer is in a cache.
  struct Problem {
    std::vector<Posed> of_pipe;
    std::vector<std::uint8_t> marks;    // by pipe: tight, may_be_over
    std::vector<double> load;           // by pipe: what streams would put on it
    std::vector<std::uint32_t> posed;   // pipes that have a place
    std::vector<std::uint32_t> loaded;  // and those that have a load
    std::uint32_t number = 0;
    bool look_again = false;  // short transfers may leave more to streams
  };
  // What its ways cross, one behind the other, as far as anybody has asked; it never changes.
  struct Laid {
    std::vector<Crossing> crossings;
    std::array<std::uint16_t, Fan::most_ways> ends{};  // by way
    std::uint16_t ways = 0;
  };

  struct AtNic {
    std::uint32_t pipe = 0;
    double times = 1;
  };

  // What all of its ways cross: NICs, with the acknowledgements that go the other way.
  std::array<AtNic, 4> at_nics(const Stream& stream) const;
  std::span<const Crossing> crossed(std::uint32_t stream, std::uint32_t way);
  void lay_next(std::uint32_t stream);
  void load(std::uint32_t stream, double sign);
  void give(std::uint32_t stream, double share, const OnWay& on_way);
  void give_what_is_left(std::uint32_t stream);
  // A NIC of which all streams are its own to itself, of one class, and few: their shares follow at once.
  bool only_loops(NicId nic) const;
  double share_of_loop(NicId nic) const;
  void share_among_loops(NicId nic);
  // Short transfers leave a NIC's loops less than its link, and may leave them more.
  bool have_less(NicId nic) const;
  void settle(Stream& stream) const;
  // When it gets to its stop, if its share stays; never if it has none.
  Instant due_at(const Stream& stream) const;
  void expect(std::uint32_t stream);
  void set_timer();
  // The problem of shares with those links of the fabric that are known to fill up; whether it has shown others.
  void pose(std::uint32_t stream);
  std::uint32_t place_of(std::uint32_t pipe);
  double room_of(std::uint32_t pipe);
  bool find_tight();
  double fitting(std::span<const Crossing> crossings) const;
  void hand_out();

  Engine& engine_;
  const Dragonfly& dragonfly_;
  const fabric::QosProfile& profile_;
  Pipes& pipes_;
  double detour_speed_;
  std::uint64_t key_of_due_;
  std::uint64_t key_of_solving_;
  fabric::Pool<Stream> streams_;
  std::vector<std::uint32_t> active_;
  Fan fan_;
  Division division_;
  std::vector<Crossing> crossings_;                // of the way laid last
  std::vector<Laid> laid_;                         // by stream
  std::vector<std::vector<std::uint32_t>> loops_;  // by NIC: its streams to itself
  Problem problem_;
  // Instants, the earliest first, at which streams get to their stops; what a stream has overtaken is passed over.
  using Due = std::pair<std::uint64_t, std::uint32_t>;
  std::vector<Due> due_;
  std::uint64_t timer_at_ps_ = never.ps;
  std::uint64_t solve_at_ps_ = never.ps;
  double pace_ = 0;  // of how much of their work streams do in a picosecond, the mean when shares were found last
  std::uint32_t begun_ = 0;
};

}  // namespace dryfly::flow
