#include "grid.hpp"

namespace dryfly::hpl {
namespace {

constexpr const char* kNicKey = "multi_nic_pref_nic";

// Sets the hint, and asks what became of it.
std::string prefer_nic(MPI_Comm where, const std::vector<int>& nics, int rank) {
  if (nics.empty()) return "";
  const std::string wanted = std::to_string(nics[static_cast<std::size_t>(rank) % nics.size()]);
  MPI_Info info = MPI_INFO_NULL, used = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, kNicKey, wanted.c_str());
  MPI_Comm_set_info(where, info);
  MPI_Info_free(&info);
  char value[MPI_MAX_INFO_VAL + 1] = {};
  int length = MPI_MAX_INFO_VAL, is_there = 0;
  MPI_Comm_get_info(where, &used);
  MPI_Info_get(used, kNicKey, length, value, &is_there);
  MPI_Info_free(&used);
  return is_there != 0 ? value : "";
}

}  // namespace

Grid::Grid(MPI_Comm all, int rows, int columns, bool row_major, const NicHints& nics)
    : rows_(rows), columns_(columns), all_(all) {
  MPI_Comm_rank(all, &rank_);
  row_ = row_major ? rank_ / columns : rank_ % rows;
  column_ = row_major ? rank_ % columns : rank_ / rows;
  MPI_Comm_split(all, row_, column_, &along_row_);
  MPI_Comm_split(all, column_, row_, &along_column_);
  row_nic_ = prefer_nic(along_row_, nics.row, rank_);
  column_nic_ = prefer_nic(along_column_, nics.column, rank_);
}

Grid::~Grid() {
  MPI_Comm_free(&along_row_);
  MPI_Comm_free(&along_column_);
}

}  // namespace dryfly::hpl
