#include "core/network/flow/streams.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace dryfly::flow {
namespace {

using fabric::none;

constexpr double slack = 1e-9;
constexpr double rounding = 1e-6;
constexpr int most_rounds = 3;
constexpr double tolerance = 0.004;  // of shares: see Shares
constexpr double still_tight = 0.7;  // of its capacity: a link that has less is taken out of the problem again
// An epoch is that part of the time that a stream takes in the mean, and no longer than finding the shares of so many
// streams is worth: a few of them are looked at again at once.
constexpr double epochs_in_stream = 8;
constexpr double epoch_for_each_ps = 8'000;
constexpr double shortest_epoch_ps = 1'000;
constexpr double longest_epoch_ps = 20'000'000;
constexpr std::uint64_t longest_timer_ps = 10'000'000;
// Of more the shares are found as others' are, for each that begins or ends concerns them all.
constexpr std::size_t most_loops = 16;
// Of a stream whose ways are all out of use: it goes on, and finds at its end that all is lost.
constexpr double trickle = 1e-4;

}  // namespace

Streams::Streams(Engine& engine, const Dragonfly& dragonfly, const fabric::QosProfile& profile, const Ways& ways,
                 Pipes& pipes, double detour_speed, std::uint64_t key_of_due, std::uint64_t key_of_solving)
    : engine_(engine),
      dragonfly_(dragonfly),
      profile_(profile),
      pipes_(pipes),
      detour_speed_(detour_speed),
      key_of_due_(key_of_due),
      key_of_solving_(key_of_solving),
      fan_(dragonfly, ways, pipes),
      division_(profile, tolerance),
      loops_(dragonfly.nic_count()),
      problem_{.of_pipe = std::vector<Posed>(pipes.count()),
               .marks = std::vector<std::uint8_t>(pipes.count()),
               .load = std::vector<double>(pipes.count()),
               .posed = {},
               .loaded = {}} {}

std::uint32_t Streams::begin(const Course& course, std::uint64_t stop_ps) {
  const std::uint32_t number = streams_.take();
  Stream& stream = streams_[number];
  stream = Stream{};
  stream.course = course;
  const fabric::ClassShares& shares = profile_.classes[course.traffic_class];
  stream.limit = shares.ceiling_ppm / static_cast<double>(fabric::whole_ppm);
  stream.left_ps = static_cast<double>(course.work_ps);
  stream.base_ps = engine_.now().ps;
  stream.stop_ps = stop_ps;
  stream.number = begun_++;
  if (course.source != course.target) {
    stream.ways = fan_.count(dragonfly_.switch_of(course.source), dragonfly_.switch_of(course.target));
  }
  if (number >= laid_.size()) laid_.resize(number + std::size_t{1});
  laid_[number].crossings.clear();
  laid_[number].ways = 0;
  stream.place = static_cast<std::uint32_t>(active_.size());
  active_.push_back(number);
  for (const AtNic& crossing : at_nics(stream)) {
    if (pipes_.classes() != nullptr) pipes_.classes()->change(crossing.pipe, course.traffic_class, 1, 0);
    ++pipes_[crossing.pipe].streams;
    pipes_[crossing.pipe].wanted += crossing.times * stream.limit;
  }
  if (course.source == course.target) loops_[course.source.value].push_back(number);
  if (only_loops(course.source)) {
    share_among_loops(course.source);
  } else {
    give_what_is_left(number);
  }
  return number;
}

void Streams::end(std::uint32_t number) {
  Stream& stream = streams_[number];
  bool matters = false;
  load(number, -1);
  for (const AtNic& crossing : at_nics(stream)) {
    Pipe& pipe = pipes_[crossing.pipe];
    matters |= pipe.full;
    pipe.wanted -= crossing.times * stream.limit;
    if (pipes_.classes() != nullptr) pipes_.classes()->change(crossing.pipe, stream.course.traffic_class, -1, 0);
    if (--pipe.streams == 0) pipe.wanted = pipe.share = 0;
  }
  for (std::uint32_t way = 0; way < stream.ways; ++way) {
    if (stream.on_way[way] == 0) continue;
    for (const Crossing& crossing : crossed(number, way)) matters |= pipes_[crossing.pipe].full;
  }
  stream.due_ps = never.ps;
  active_[stream.place] = active_.back();
  streams_[active_.back()].place = stream.place;
  active_.pop_back();
  const Course course = stream.course;
  streams_.give_back(number);
  if (course.source == course.target) {
    std::vector<std::uint32_t>& loops = loops_[course.source.value];
    std::erase(loops, number);
    if (loops.empty() || only_loops(course.source)) return share_among_loops(course.source);
  }
  if (matters && !active_.empty()) expect_solving();
}

std::uint32_t Streams::take_due() {
  if (timer_at_ps_ <= engine_.now().ps) timer_at_ps_ = never.ps;
  while (!due_.empty() && due_.front().first <= engine_.now().ps) {
    const auto [at_ps, number] = due_.front();
    std::pop_heap(due_.begin(), due_.end(), std::greater<>{});
    due_.pop_back();
    Stream& stream = streams_[number];
    if (stream.due_ps != at_ps) continue;
    stream.due_ps = never.ps;
    if (due_at(stream) <= engine_.now()) return number;
    expect(number);
  }
  set_timer();
  return none;
}

void Streams::pause(std::uint32_t number) {
  settle(streams_[number]);
  streams_[number].paused = true;
}

void Streams::go_on(std::uint32_t number, std::uint64_t stop_ps) {
  Stream& stream = streams_[number];
  if (stream.paused) settle(stream);
  stream.paused = false;
  stream.stop_ps = std::min(stop_ps, stream.course.work_ps);
  expect(number);
}

void Streams::settle(Stream& stream) const {
  const auto passed = static_cast<double>(engine_.now().ps - stream.base_ps);
  if (!stream.paused) stream.left_ps = std::max(0.0, stream.left_ps - stream.share * passed);
  stream.base_ps = engine_.now().ps;
}

Instant Streams::due_at(const Stream& stream) const {
  if (stream.paused || stream.share <= 0) return never;
  const double more_ps = stream.left_ps - static_cast<double>(stream.course.work_ps - stream.stop_ps);
  return Instant{stream.base_ps + static_cast<std::uint64_t>(std::ceil(std::max(0.0, more_ps / stream.share - slack)))};
}

void Streams::expect(std::uint32_t number) {
  Stream& stream = streams_[number];
  const Instant due = due_at(stream);
  if (due.ps >= stream.due_ps) return;  // what comes before will look again
  stream.due_ps = due.ps;
  due_.push_back({due.ps, number});
  std::push_heap(due_.begin(), due_.end(), std::greater<>{});
  set_timer();
}

// No event is left behind for long when a stream is through sooner than it seemed: whoever runs the engine takes what
// there is for a sign that something is under way.
void Streams::set_timer() {
  if (due_.empty() || active_.empty()) return;
  const std::uint64_t at_ps =
      std::min(std::max(due_.front().first, engine_.now().ps), engine_.now().ps + longest_timer_ps);
  if (at_ps >= timer_at_ps_) return;
  timer_at_ps_ = at_ps;
  engine_.schedule(Instant{at_ps}, key_of_due_);
}

// --- what a stream crosses ----------------------------------------------------------------------------------------

std::array<Streams::AtNic, 4> Streams::at_nics(const Stream& stream) const {
  const Course& course = stream.course;
  const double answers = course.source == course.target ? 0 : course.acknowledgements;
  return {{{pipes_.egress(course.source), 1},
           {pipes_.ingress(course.target), 1},
           {pipes_.egress(course.target), answers},
           {pipes_.ingress(course.source), answers}}};
}

std::span<const Crossing> Streams::crossed(std::uint32_t number, std::uint32_t way) {
  Laid& laid = laid_[number];
  while (laid.ways <= way) lay_next(number);
  const std::uint32_t begin = way == 0 ? 0 : laid.ends[way - 1];
  return std::span(laid.crossings).subspan(begin, laid.ends[way] - begin);
}

void Streams::lay_next(std::uint32_t number) {
  Laid& laid = laid_[number];
  const Stream& stream = streams_[number];
  fan_.lay(dragonfly_.switch_of(stream.course.source), dragonfly_.switch_of(stream.course.target), stream.number,
           laid.ways, crossings_);
  laid.crossings.insert(laid.crossings.end(), crossings_.begin(), crossings_.end());
  laid.ends[laid.ways++] = static_cast<std::uint16_t>(laid.crossings.size());
}

// What the stream has of its pipes, added or taken away.
void Streams::load(std::uint32_t number, double sign) {
  const Stream& stream = streams_[number];
  if (stream.share == 0) return;
  ClassAccounts* classes = pipes_.classes();
  const std::uint32_t traffic_class = stream.course.traffic_class;
  for (const AtNic& crossing : at_nics(stream)) {
    const double more = sign * stream.share * crossing.times;
    if (classes != nullptr) classes->change(crossing.pipe, traffic_class, 0, more);
    Pipe& pipe = pipes_[crossing.pipe];
    pipe.share = std::max(0.0, pipe.share + more);
  }
  for (std::uint32_t way = 0; way < stream.ways; ++way) {
    if (stream.on_way[way] == 0) continue;
    for (const Crossing& crossing : crossed(number, way)) {
      const double more = sign * static_cast<double>(stream.on_way[way]) * crossing.times;
      if (classes != nullptr) classes->change(crossing.pipe, traffic_class, sign > 0 ? 1 : -1, more);
      Pipe& pipe = pipes_[crossing.pipe];
      pipe.streams += sign > 0 ? 1 : -1U;
      pipe.share = std::max(0.0, pipe.share + more);
      if (pipe.streams == 0) pipe.share = 0;
    }
  }
}

void Streams::give(std::uint32_t number, double share, const OnWay& on_way) {
  Stream& stream = streams_[number];
  settle(stream);
  load(number, -1);
  stream.share = share;
  stream.on_way = on_way;
  load(number, 1);
  expect(number);
}

void Streams::give_what_is_left(std::uint32_t number) {
  const Stream& stream = streams_[number];
  const auto left_of = [&](const auto& crossings, double most) {
    for (const auto& crossing : crossings) {
      const Pipe& pipe = pipes_[crossing.pipe];
      if (crossing.times > 0) most = std::min(most, (pipes_.for_flows(crossing.pipe) - pipe.share) / crossing.times);
    }
    return std::max(0.0, most);
  };
  double share = left_of(at_nics(stream), stream.limit);
  std::uint32_t best = 0;
  double most = -1;
  for (std::uint32_t way = 0; way < stream.ways && most < share; ++way) {
    const double left = left_of(crossed(number, way), share);
    if (left <= most) continue;
    most = left;
    best = way;
  }
  if (stream.ways > 0) share = most;
  if (share < slack) share = 0;
  OnWay on_way{};
  if (stream.ways > 0) on_way[best] = static_cast<float>(share);
  const bool wants_more = share < stream.limit * (1 - slack);
  give(number, share, on_way);
  if (wants_more || profile_.classes[stream.course.traffic_class].capped()) expect_solving();
}

bool Streams::only_loops(NicId nic) const {
  const std::vector<std::uint32_t>& loops = loops_[nic.value];
  const std::size_t crossings = 2 * loops.size();  // of each pipe: as source and as target
  if (loops.empty() || loops.size() > most_loops || pipes_[pipes_.egress(nic)].streams != crossings ||
      pipes_[pipes_.ingress(nic)].streams != crossings) {
    return false;
  }
  const std::uint32_t first = streams_[loops.front()].course.traffic_class;
  return std::ranges::all_of(loops, [&](std::uint32_t loop) { return streams_[loop].course.traffic_class == first; });
}

double Streams::share_of_loop(NicId nic) const {
  const double room = std::min(pipes_.for_flows(pipes_.egress(nic)), pipes_.for_flows(pipes_.ingress(nic)));
  const std::vector<std::uint32_t>& loops = loops_[nic.value];
  return room * streams_[loops.front()].limit / static_cast<double>(loops.size());
}

bool Streams::have_less(NicId nic) const {
  return !pipes_.is_for_flows(pipes_.egress(nic)) || !pipes_.is_for_flows(pipes_.ingress(nic));
}

void Streams::share_among_loops(NicId nic) {
  Pipe& out = pipes_[pipes_.egress(nic)];
  Pipe& in = pipes_[pipes_.ingress(nic)];
  const std::vector<std::uint32_t>& loops = loops_[nic.value];
  out.full = in.full = loops.size() > 1;
  if (loops.empty()) return;
  const double share = share_of_loop(nic);
  for (const std::uint32_t loop : loops) give(loop, share, {});
  if (have_less(nic)) expect_solving(Pipes::look_again_ps);
}

// --- shares -------------------------------------------------------------------------------------------------------

void Streams::expect_solving(double least_ps) {
  const double streams = static_cast<double>(active_.size());
  double epoch_ps = epoch_for_each_ps * streams;
  if (pace_ > 0) epoch_ps = std::min(epoch_ps, 1 / (pace_ * epochs_in_stream));
  epoch_ps = std::max(std::clamp(epoch_ps, shortest_epoch_ps, longest_epoch_ps), least_ps);
  const std::uint64_t at_ps = engine_.now().ps + static_cast<std::uint64_t>(epoch_ps);
  if (at_ps >= solve_at_ps_) return;
  solve_at_ps_ = at_ps;
  engine_.schedule(Instant{at_ps}, key_of_solving_);
}

double Streams::room_of(std::uint32_t number) {
  Posed& posed = problem_.of_pipe[number];
  if (posed.room_of != problem_.number) {
    posed.room_of = problem_.number;
    posed.room = pipes_.for_flows(number);
  }
  return posed.room;
}

std::uint32_t Streams::place_of(std::uint32_t number) {
  std::uint32_t& place = problem_.of_pipe[number].place;
  if (place == none) {
    const bool at_nic = number >= dragonfly_.port_count();
    place = division_.add_pipe(room_of(number), at_nic);
    problem_.posed.push_back(number);
  }
  return place;
}

void Streams::pose(std::uint32_t number) {
  const Stream& stream = streams_[number];
  if (stream.course.source == stream.course.target && only_loops(stream.course.source)) {
    division_.add_stream(stream.course.traffic_class, share_of_loop(stream.course.source));
    problem_.look_again |= have_less(stream.course.source);
    return;
  }
  division_.add_stream(stream.course.traffic_class, stream.limit);
  for (const AtNic& crossing : at_nics(stream)) {
    // What can never be full is no part of the problem.
    if (crossing.times > 0 && pipes_[crossing.pipe].wanted > room_of(crossing.pipe) * (1 + slack)) {
      division_.cross(place_of(crossing.pipe), crossing.times);
    }
  }
  const SwitchId from = dragonfly_.switch_of(stream.course.source);
  const SwitchId to = dragonfly_.switch_of(stream.course.target);
  for (std::uint32_t way = 0; way < stream.ways; ++way) {
    division_.add_way(fan_.is_detour(from, to, way) ? detour_speed_ : 1);
    bool is_tight = false;
    for (const Crossing& crossing : crossed(number, way)) {
      if ((problem_.marks[crossing.pipe] & tight) == 0) continue;
      is_tight = true;
      division_.cross(place_of(crossing.pipe), crossing.times);
    }
    if (!is_tight) return;  // it never fills up
  }
}

bool Streams::find_tight() {
  for (const std::uint32_t pipe : problem_.loaded) problem_.load[pipe] = 0;
  problem_.loaded.clear();
  for (std::uint32_t place = 0; place < active_.size(); ++place) {
    const std::uint32_t ways = division_.ways(place);
    for (std::uint32_t way = 0; way < ways; ++way) {
      const double share = division_.rate(place, way);
      if (share == 0) continue;
      for (const Crossing& crossing : crossed(active_[place], way)) {
        double& load = problem_.load[crossing.pipe];
        if (load == 0) problem_.loaded.push_back(crossing.pipe);
        load += share * crossing.times;
      }
    }
  }
  bool found = false;
  for (const std::uint32_t pipe : problem_.loaded) {
    const double load = problem_.load[pipe];
    std::uint8_t& marks = problem_.marks[pipe];
    marks = (marks & tight) | (load > pipes_.least_for_flows(pipe) ? may_be_over : 0);
    if ((marks & tight) != 0 || load <= room_of(pipe) * (1 + rounding)) continue;
    marks |= tight;
    found = true;
  }
  return found;
}

// What of a way no link can carry, where the problem had no time to learn of it, is nobody's.
double Streams::fitting(std::span<const Crossing> crossings) const {
  double fits = 1;
  for (const Crossing& crossing : crossings) {
    if ((problem_.marks[crossing.pipe] & may_be_over) == 0) continue;
    const double load = problem_.load[crossing.pipe];
    const double capacity = pipes_.for_flows(crossing.pipe);
    if (load > capacity * (1 + rounding)) fits = std::min(fits, capacity / load);
  }
  return fits;
}

void Streams::hand_out() {
  pace_ = 0;
  for (std::uint32_t place = 0; place < active_.size(); ++place) {
    const std::uint32_t number = active_[place];
    Stream& stream = streams_[number];
    double share = division_.rate(place);
    OnWay on_way{};
    const std::uint32_t ways = division_.ways(place);
    for (std::uint32_t way = 0; way < ways; ++way) {
      const double rate = division_.rate(place, way);
      if (rate == 0) continue;
      const double fits = fitting(crossed(number, way));
      on_way[way] = static_cast<float>(rate * fits);
      share -= rate * (1 - fits);
    }
    share = std::max(share, trickle);
    if (share != stream.share || on_way != stream.on_way) give(number, share, on_way);
    pace_ += share / static_cast<double>(stream.course.work_ps);
  }
  pace_ /= static_cast<double>(active_.size());
}

void Streams::solve() {
  if (solve_at_ps_ != engine_.now().ps) return;
  solve_at_ps_ = never.ps;
  for (const std::uint32_t pipe : problem_.posed) pipes_[pipe].full = false;
  if (active_.empty()) return;
  ++problem_.number;
  problem_.look_again = false;
  bool again = true;
  for (int round = 0; again && round < most_rounds; ++round) {
    for (const std::uint32_t pipe : problem_.posed) problem_.of_pipe[pipe].place = none;
    problem_.posed.clear();
    division_.clear();
    for (const std::uint32_t number : active_) pose(number);
    division_.solve();
    again = find_tight();
  }
  // Those that are tight no more are forgotten.
  for (const std::uint32_t pipe : problem_.posed) {
    pipes_[pipe].full = division_.full(problem_.of_pipe[pipe].place);
    problem_.look_again |= pipes_[pipe].full && !pipes_.is_for_flows(pipe);
    if (problem_.load[pipe] < still_tight * pipes_[pipe].capacity) problem_.marks[pipe] &= may_be_over;
  }
  hand_out();
  // Links beyond those that were known are found in the next epoch, even if nothing begins or ends in this one.
  if (again) expect_solving();
  if (problem_.look_again) expect_solving(Pipes::look_again_ps);
}

}  // namespace dryfly::flow
