#include "grid.hpp"

namespace dryfly::hpl {

Grid::Grid(MPI_Comm all, int rows, int columns, bool row_major) : rows_(rows), columns_(columns), all_(all) {
  MPI_Comm_rank(all, &rank_);
  row_ = row_major ? rank_ / columns : rank_ % rows;
  column_ = row_major ? rank_ % columns : rank_ / rows;
  MPI_Comm_split(all, row_, column_, &along_row_);
  MPI_Comm_split(all, column_, row_, &along_column_);
}

Grid::~Grid() {
  MPI_Comm_free(&along_row_);
  MPI_Comm_free(&along_column_);
}

}  // namespace dryfly::hpl
