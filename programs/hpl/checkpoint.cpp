#include "checkpoint.hpp"

#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "bad_input.hpp"

namespace dryfly::hpl {
namespace {

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

}  // namespace

Checkpoint::Checkpoint(const CheckpointOptions& options, MPI_Comm where, std::string name, std::string about)
    : options_(options), where_(where), name_(std::move(name)), about_(std::move(about)) {
  MPI_Comm_rank(where, &rank_);
  begin_ = last_ = MPI_Wtime();
  if (options_.folder.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(options_.folder, ignored);
  if (!all_agree(access(options_.folder.c_str(), W_OK) == 0))
    throw BadInput("--checkpoint " + options_.folder + ": no file can be written there");
}

std::string Checkpoint::file(std::int64_t step) const {
  return options_.folder + "/" + name_ + "-" + std::to_string(step) + "-" + std::to_string(rank_);
}

bool Checkpoint::all_agree(bool mine) const {
  int all = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, where_);
  return all == 1;
}

std::int64_t Checkpoint::restore(Checkpointed& state) {
  if (options_.folder.empty() || !options_.restart) return 0;
  long long step = 0;
  std::string about;
  if (rank_ == 0) {
    std::ifstream stream(current());
    stream >> step >> seconds_before_;
    std::getline(stream >> std::ws, about);
  }
  MPI_Bcast(&step, 1, MPI_LONG_LONG, 0, where_);
  MPI_Bcast(&seconds_before_, 1, MPI_DOUBLE, 0, where_);
  if (step == 0) return 0;
  if (!all_agree(rank_ != 0 || about == about_))
    throw BadInput("--restart: what is kept in " + options_.folder + " is of another run (" + about + ")");
  const File stream(std::fopen(file(step).c_str(), "rb"));
  const bool read = stream != nullptr && state.transfer_state(step, [&](void* data, std::size_t bytes) {
    return std::fread(data, 1, bytes, stream.get()) == bytes;
  });
  if (!all_agree(read)) throw BadInput("--restart: a file of step " + std::to_string(step) + " cannot be read");
  kept_ = step;
  return step;
}

void Checkpoint::after_step(std::int64_t next_step, Checkpointed& state) {
  if (options_.folder.empty()) return;
  int due = MPI_Wtime() - last_ >= options_.every ? 1 : 0;
  MPI_Bcast(&due, 1, MPI_INT, 0, where_);  // the clocks differ, the decision must not
  if (due == 0) return;
  state.settle();
  bool written = false;
  {
    const File stream(std::fopen(file(next_step).c_str(), "wb"));
    written = stream != nullptr && state.transfer_state(next_step, [&](void* data, std::size_t bytes) {
      return std::fwrite(data, 1, bytes, stream.get()) == bytes;
    });
    written = written && std::fflush(stream.get()) == 0 && fsync(fileno(stream.get())) == 0;
  }
  const bool complete = all_agree(written);
  if (rank_ == 0 && complete) {
    std::ofstream(current() + ".new") << next_step << " " << seconds_before_ + MPI_Wtime() - begin_ << "\n"
                                      << about_ << "\n";
    std::rename((current() + ".new").c_str(), current().c_str());
  }
  MPI_Barrier(where_);
  // Without a complete set the one before stays; the run itself goes on either way.
  if (complete) kept_ = next_step;
  remove_all_but(kept_);
  last_ = MPI_Wtime();
}

void Checkpoint::remove() {
  if (options_.folder.empty()) return;
  if (rank_ == 0) std::remove(current().c_str());
  MPI_Barrier(where_);
  remove_all_but(0);
}

// An interruption between two sets may have left more than one.
void Checkpoint::remove_all_but(std::int64_t step) const {
  std::error_code ignored;
  const std::string end = "-" + std::to_string(rank_);
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(name_ + "-", 0) == 0 && name.ends_with(end) && entry.path() != std::filesystem::path(file(step)))
      std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace dryfly::hpl
