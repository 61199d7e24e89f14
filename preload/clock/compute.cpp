#include "preload/clock/compute.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "preload/clock/compute_file.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

using wire::ComputeMode;

// The present gap and the counting of points. Only the main thread comes here.
struct Compute {
  ComputeMode mode = ComputeMode::none;
  std::uint64_t factor_ppm = 0;
  std::uint64_t threshold_ns = 0;
  std::uint64_t point = 0;         // points of observation so far
  std::uint64_t gap_began_ns = 0;  // CPU clock of the thread
  std::uint64_t credited_ps = 0;   // of the present gap
  bool in_gap = false;             // the main thread is outside MPI (not in a callback of it)
  bool mismatch = false;
};
constinit Compute compute;
constinit GapWriter writer;
constinit GapReader reader;

// ns x ppm / 1e6 in picoseconds, without overflow for years of nanoseconds.
std::uint64_t scaled_ps(std::uint64_t ns, std::uint64_t ppm) { return ns / 1000 * ppm + ns % 1000 * ppm / 1000; }

void observe_measured(Observation observation) {
  const std::uint64_t gap_ns = real::now_ns(CLOCK_THREAD_CPUTIME_ID) - compute.gap_began_ns;
  const bool counts = gap_ns >= compute.threshold_ns;
  if (counts) {
    const std::uint64_t due_ps = scaled_ps(gap_ns, compute.factor_ppm);
    const std::uint64_t added_ps = due_ps - compute.credited_ps;
    compute.credited_ps = due_ps;
    if (added_ps > 0) {
      advance(added_ps);
      writer.add(compute.point, added_ps);
    }
  }
  if (observation == Observation::end_of_gap) {
    wire::RankTimes& times = dryfly_self.page->times;
    (counts ? times.measured_ns : times.dropped_gaps_ns) += gap_ns;
  }
}

void report_mismatch(const char* how) {
  if (!compute.mismatch) {
    fprintf(stderr,
            "dryfly: rank %s does not fit its recorded computing: %s; times from here on are not the recorded "
            "ones\n",
            rank_name(), how);
  }
  compute.mismatch = true;
  ++dryfly_self.page->times.replay_mismatches;
}

void observe_replayed() {
  std::uint64_t added_ps = 0;
  switch (reader.take(compute.point, added_ps)) {
    case GapReader::Answer::nothing_here:
      return;
    case GapReader::Answer::added:
      return advance(added_ps);
    case GapReader::Answer::past_end:
      return report_mismatch("it goes on beyond the end of the recording");
  }
}

}  // namespace

void open_compute() {
  const wire::SegmentHeader& header = *dryfly_self.header;
  compute.mode =
      header.compute.mode == ComputeMode::model ? ComputeMode::none : header.compute.mode;  // preload/clock/work.cpp
  compute.factor_ppm = header.compute.factor_ppm;
  compute.threshold_ns = header.compute.threshold_ns;
  if (compute.mode == ComputeMode::measured) writer.open(getenv("DRYFLY_COMPUTE_RECORD"));
  if (compute.mode == ComputeMode::replay && !reader.open(getenv("DRYFLY_COMPUTE_REPLAY"))) {
    report_mismatch("there is no recording for it");
    compute.mode = ComputeMode::none;
  }
}

void begin_gap() {
  if (compute.mode == ComputeMode::none || !on_main_thread()) return;
  compute.in_gap = true;
  compute.credited_ps = 0;
  if (compute.mode == ComputeMode::measured) compute.gap_began_ns = real::now_ns(CLOCK_THREAD_CPUTIME_ID);
}

void observe_compute(Observation observation) {
  if (compute.mode == ComputeMode::none || phase() != Phase::running || !on_main_thread() || !compute.in_gap) return;
  compute.in_gap = observation == Observation::within_gap;
  if (compute.mode == ComputeMode::measured) {
    observe_measured(observation);
  } else {
    observe_replayed();
  }
  ++compute.point;
}

void close_compute() {
  if (compute.mode == ComputeMode::measured) writer.close(compute.point);
  if (compute.mode == ComputeMode::replay && reader.has_more(compute.point)) {
    report_mismatch("it ended before the end of the recording");
  }
  compute.mode = ComputeMode::none;
}

namespace {

// A program that ends without MPI_Finalize still leaves what was recorded so far.
__attribute__((destructor)) void flush_recording() {
  if (phase() == Phase::running) close_compute();
}

}  // namespace

}  // namespace dryfly::preload
