// Virtual time for real processes: who may run, up to where the network may be simulated, and when a rank sees what
// has reached it.
//
// Each rank has a bound, the earliest instant at which it may still act. What it does at t reaches its NIC
// command_latency later, so every network event before (smallest bound + command_latency) is final and is run. What
// a NIC reports at t is visible to a CPU completion_latency later. Bounds come from the ranks' published clocks and
// from what they wait for; when ranks look at them has no influence on any result.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conductor/batons.hpp"
#include "conductor/bound_heap.hpp"
#include "conductor/door.hpp"
#include "conductor/rank.hpp"
#include "conductor/report.hpp"
#include "conductor/run_recorder.hpp"
#include "conductor/segment.hpp"
#include "conductor/status.hpp"
#include "conductor/translator.hpp"
#include "core/engine/engine.hpp"
#include "core/network/packet/packet_network.hpp"
#include "core/nic/nic.hpp"
#include "core/spec/spec.hpp"
#include "core/storage/storage_traffic.hpp"
#include "core/topology/dragonfly.hpp"
#include "wire/spinner.hpp"

namespace dryfly {

class Conductor final : private EventOutlet {
 public:
  // With a folder for it, the run is recorded there.
  Conductor(const Spec& spec, const std::string& channel, const std::string& result_path, StatusLine status,
            StatusLine attach_line, int life_line, const std::string& record_folder = "");
  // Until the life line closes.
  void run();

 private:
  using WallClock = std::chrono::steady_clock;

  void emit(RankId rank, PendingEvent&& pending) override;
  void unreachable(RankId rank, RankId other) override;
  void memory_changed(RankId rank) override;
  void damaged(RankId rank, const char* reason) override;
  bool flush(Rank& rank);
  bool copy_is_missing(const PendingEvent& pending) const;
  bool waits_for_copy(Rank& rank, std::uint64_t instant);
  void shown(Rank& rank);
  void flush_waiters(Rank& copier);

  void serve_visits();
  void admit(const Visit& visit);
  void process_ended(std::uint32_t rank, std::uint32_t pid);
  bool look_at_attention();
  void look(Rank& rank);
  void open_gate(Rank& rank);
  void rejoin(Rank& rank);
  void gate_wait(Rank& rank, RankState state, std::uint64_t bound);
  bool takes_turns(const Rank& rank) const;
  void gate_wait_in_turn(Rank& rank, RankState state);
  std::uint64_t next_event_ps(const Rank& rank) const;
  bool pass_batons();
  void gate_start(Rank& rank);
  void gate_end(Rank& rank);
  void gate_meet(Rank& rank);
  void start_all();
  void end_all();

  std::uint64_t settle_bounds();
  bool advance();
  bool release_ready();
  void release(Rank& rank, std::uint64_t clock);
  void set_state(Rank& rank, RankState state, std::uint64_t bound);
  // How far the network may be ahead of the ranks: not at all where one watches memory that NICs change.
  std::uint64_t lookahead_ps() const { return memory_watched_ ? 0 : command_latency_.ps; }
  // A rank at an earlier instant than this has all that it can see there. Memory shows changes up to the instant
  // itself.
  std::uint64_t visible_until() const { return processed_until_.ps + (memory_watched_ ? 1 : completion_latency_.ps); }

  void wait_for_work();
  std::uint64_t needed_bound();
  bool work_is_there() const;
  // Throws SpecError when ranks cannot reach each other on the machine as it is.
  void require_routes() const;
  void check_deadlock();
  void check_stalls();
  void report_deadlock();
  void start_recording();
  void finish_recording();

  // Traffic beside the job: storage.cpp.
  std::unique_ptr<storage::StorageTraffic> storage_of(const Spec& spec);
  bool nothing_under_way();
  std::uint64_t events_of_job() const;
  Instant limit_of_waiting();

  // A served fabric: served.cpp.
  bool served() const { return segment_.header().served != 0; }
  void open_fabric();
  Rank* seat_on(NodeId node);
  void prepare_seat(Rank& rank);
  void seat_ended(Rank& rank);
  void drop(const PendingEvent& pending);
  void wake_sleeper(Rank& rank);
  Instant paced(Instant limit);
  long served_nap_ns();
  void look_at_holders();
  void let_go(Rank& rank);

  // Ranks give a few events for each nanosecond: slots of 4 ns hold enough of them for the engine to look ahead.
  Engine engine_{12};
  Dragonfly topology_;
  PacketNetwork network_;
  std::unique_ptr<storage::StorageTraffic> storage_;  // none: the job has the network for itself
  Segment segment_;
  std::vector<Rank> ranks_;
  Duration command_latency_;
  Duration completion_latency_;
  Translator translator_;
  Nics nics_;
  BoundHeap bounds_;
  Batons batons_;
  // Ranks that wait for an instant (polling, timed), by that instant.
  std::set<std::pair<std::uint64_t, std::uint32_t>> by_instant_;
  std::map<std::uint64_t, std::vector<RankId>> meetings_;  // who is there already: meetings.cpp
  std::vector<RankId> ready_;                              // have an event and are still waiting to be released

  Spec spec_;
  Report report_;
  std::string record_folder_;  // empty: nothing is recorded
  std::unique_ptr<RunRecorder> recorder_;
  StatusLine status_;
  StatusLine attach_line_;
  Door door_;

  Instant processed_until_{};  // every event before this is done, and none will be added there
  Instant limit_{};            // of the engine run under way
  Instant start_{};
  std::uint32_t running_ = 0;
  std::uint32_t starting_ = 0;  // at the start gate
  std::uint32_t ending_ = 0;    // have reached MPI_Finalize
  std::uint32_t processors_ = 1;
  wire::Spinner spinner_{20};  // some 2 us, which is what a rank takes for a short answer
  bool started_ = false;
  bool memory_watched_ = false;  // a rank watches memory (RankPage::watches_memory)
  bool ended_ = false;
  bool broken_ = false;  // a deadlock was reported or a process is gone: only the end is left
  std::uint64_t events_at_last_round_ = 0;
  std::uint64_t writes_at_last_round_ = 0;
  std::uint32_t fruitless_rounds_ = 0;
  GateTotals gates_;

  // Wall time in which the conductor could look. One that was stopped or starved for a while, with the ranks or without
  // them, has learnt nothing of them in that while.
  WallClock::duration watched_{};
  WallClock::duration last_progress_{};  // when, in watched time
  WallClock::time_point last_check_{};
  WallClock::time_point paced_at_{};
  struct Stall {
    std::uint64_t cpu_ticks = 0;
    std::uint64_t call_count = 0;
    WallClock::duration since{};        // of its last call
    WallClock::duration computed_at{};  // when its processor time was last seen to grow
    bool named = false;
  };
  std::vector<Stall> stalls_;
};

}  // namespace dryfly
