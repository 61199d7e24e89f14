#include "launch/outcome.hpp"

#include <cstring>
#include <utility>

#include "core/unit/check.hpp"

namespace dryfly::launch {
namespace {

constexpr std::chrono::milliseconds presumed_for{300};
constexpr std::chrono::milliseconds on_its_way_for{3000};  // a runtime of Fortran looks for a backtrace first

}  // namespace

void Outcome::conclude(std::string line, int exit_status) {
  if (!verdict_) verdict_ = expects_more_ ? presumption_ : Verdict{std::move(line), exit_status};
}

void Outcome::conclude_by(const Ending& ending, int rank, pid_t pid) {
  const std::string who = " rank " + std::to_string(rank) + " pid " + std::to_string(pid);
  if (ending.by_signal) {
    conclude("signal" + who + " signal " + std::to_string(ending.value), exit_of_signal + ending.value);
  } else {
    expect_more("exit" + who + " code " + std::to_string(ending.value), ending.value);
  }
}

void Outcome::conclude_abort(int rank, int code) {
  const int low_byte = code & 0xff;
  conclude("abort rank " + std::to_string(rank) + " code " + std::to_string(code),
           low_byte == 0 && code != 0 ? 1 : low_byte);
}

void Outcome::conclude_interrupted(int signal) {
  conclude("interrupted " + std::to_string(signal), exit_of_signal + signal);
}

void Outcome::conclude_noexec(const std::string& path, int error) {
  conclude("noexec " + path + " " + std::strerror(error), exit_of_noexec);
}

void Outcome::expect_more(std::string line, int exit_status) {
  if (!expects_more_) presumption_ = Verdict{std::move(line), exit_status};
  expects_more_ = true;
  presumed_until_ = Clock::now() + presumed_for;
  patient_until_ = Clock::now() + on_its_way_for;
}

bool Outcome::expects_longer() {
  if (!expects_more_ || Clock::now() > patient_until_) return false;
  presumed_until_ = Clock::now() + presumed_for;
  return true;
}

void Outcome::presume(std::string line, int exit_status) {
  if (expects_more_) return;
  if (!presumption_) presumed_until_ = Clock::now() + presumed_for;
  presumption_ = Verdict{std::move(line), exit_status};
}

Outcome::Clock::time_point Outcome::presumed_until() const {
  return presumption_ ? presumed_until_ : Clock::time_point::max();
}

void Outcome::conclude_presumed() {
  DRYFLY_CHECK(presumption_.has_value());
  conclude(presumption_->line, presumption_->exit_status);
}

const std::string& Outcome::line() const {
  DRYFLY_CHECK(verdict_.has_value());
  return verdict_->line;
}

int Outcome::exit_status() const {
  DRYFLY_CHECK(verdict_.has_value());
  return verdict_->exit_status;
}

}  // namespace dryfly::launch
