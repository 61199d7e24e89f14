// The P x Q grid of processes and the block-cyclic distribution over it: block b of rows (columns) belongs to process
// row (column) b mod P (Q), as in HPL and ScaLAPACK.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace dryfly::hpl {

// One dimension: which of `count` indices, dealt out in blocks, are mine.
struct Cyclic {
  std::int64_t count = 0;
  std::int64_t block = 1;
  int processes = 1;
  int mine = 0;

  int owner(std::int64_t index) const { return static_cast<int>(index / block % processes); }
  std::int64_t local(std::int64_t index) const {  // position at its owner
    return index / block / processes * block + index % block;
  }
  std::int64_t global(std::int64_t position) const {
    return (position / block * processes + mine) * block + position % block;
  }
  // How many of the indices below `index` process p has; with index = count, how many it has at all.
  std::int64_t below(std::int64_t index, int p) const {
    const std::int64_t blocks = index / block, full = blocks / processes, rest = blocks % processes;
    if (p < rest) return (full + 1) * block;
    return full * block + (p == rest ? index % block : 0);
  }
  std::int64_t below(std::int64_t index) const { return below(index, mine); }
  std::int64_t size() const { return below(count); }
};

// Which of its NICs a process is to use for what goes along its process row (broadcasts) and along its column (rows,
// pivots); with several for the row, processes take them in turn. Empty: MPI's choice. As hints to MPI
// (multi_nic_pref_nic, MPICH), which may not heed them.
struct NicHints {
  std::vector<int> row, column;
};

class Grid {
 public:
  // Collective over `all`, which has exactly rows * columns processes.
  Grid(MPI_Comm all, int rows, int columns, bool row_major, const NicHints& nics = {});
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int row() const { return row_; }
  int column() const { return column_; }
  bool is_first() const { return rank_ == 0; }
  MPI_Comm all() const { return all_; }
  MPI_Comm along_row() const { return along_row_; }  // the processes of my process row, by their column
  // What MPI has made of the hints, as it says itself; empty where it says nothing.
  const std::string& row_nic() const { return row_nic_; }
  const std::string& column_nic() const { return column_nic_; }
  MPI_Comm along_column() const { return along_column_; }  // the processes of my process column, by their row

 private:
  int rows_, columns_, row_ = 0, column_ = 0, rank_ = 0;
  MPI_Comm all_, along_row_ = MPI_COMM_NULL, along_column_ = MPI_COMM_NULL;
  std::string row_nic_, column_nic_;
};

}  // namespace dryfly::hpl
