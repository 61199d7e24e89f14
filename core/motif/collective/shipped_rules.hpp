// The rules of data/mpi/collectives-*.rules, made part of the program when it is built.
#pragma once

#include <string_view>

namespace dryfly::motif {

extern const std::string_view mpich_rules;
extern const std::string_view openmpi_rules;
extern const std::string_view rccl_rules;
extern const std::string_view oneccl_rules;

}  // namespace dryfly::motif
