#include "core/motif/job/driver.hpp"

#include "core/motif/job/job.hpp"

namespace dryfly::motif {

void Driver::drive(Job& job) {
  DRYFLY_CHECK(job.tasks_.empty() && job.driver_ == nullptr);
  job_ = &job;
  job.driver_ = this;
  for (const Rank& rank : job.ranks_) job.schedule(job.noises_.begin(rank.id()), Job::Kind::rank, rank.id());
  job.outlets_.run(job.engine_);
}

Instant Driver::now() const { return job_->engine_.now(); }

void Driver::wake_at(Rank& rank, Instant at) { job_->schedule(at, Job::Kind::rank, rank.id()); }

}  // namespace dryfly::motif
