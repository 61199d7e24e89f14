#include <array>

#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

constexpr std::array workloads{
    Workload{"allreduce", predict_allreduce},
    Workload{"alltoall", predict_alltoall},
    Workload{"halo", predict_halo},
    Workload{"hpl", predict_hpl},
};

}  // namespace

const Workload& workload_named(std::string_view name) {
  std::string names;
  for (const Workload& workload : workloads) {
    if (workload.name == name) return workload;
    names += (names.empty() ? "" : ", ") + std::string(workload.name);
  }
  throw SpecError("workload `" + std::string(name) + "`: accepted is " + names);
}

}  // namespace dryfly::motif
