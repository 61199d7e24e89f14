#include "preload/mpi/call_record.hpp"

#include "preload/clock/compute_file.hpp"
#include "rank/record_file.hpp"

namespace dryfly::preload {

namespace {

constinit rank::RecordFile<CallRecord> file{"the MPI calls of a rank", "calls", "dfcall01"};

}  // namespace

void open_call_record() { file.open("DRYFLY_CALL_RECORD", rank_name()); }

bool calls_are_recorded() { return file.is_open(); }

void record_call(const CallRecord& record) { file.add(record); }

void close_call_record() { file.close(); }

}  // namespace dryfly::preload
