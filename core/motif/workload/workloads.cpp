#include <array>

#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

template <Collective what>
Answer predict(Stage& stage, Parameters& parameters) {
  return predict_collective(what, stage, parameters);
}

// By pairwise exchange, in a sample of its steps, unless another algorithm is asked for.
Answer predict_any_alltoall(Stage& stage, Parameters& parameters) {
  const bool chosen = parameters.has("algorithm") || parameters.has("library") || parameters.has("selection");
  return chosen ? predict_collective(Collective::alltoall, stage, parameters) : predict_alltoall(stage, parameters);
}

constexpr std::array workloads{
    Workload{"allgather", predict<Collective::allgather>},
    Workload{"allgatherv", predict<Collective::allgatherv>},
    Workload{"allreduce", predict<Collective::allreduce>},
    Workload{"alltoall", predict_any_alltoall},
    Workload{"amrwind", predict_amrwind},
    Workload{"barrier", predict<Collective::barrier>},
    Workload{"bcast", predict<Collective::bcast>},
    Workload{"fmm", predict_fmm},
    Workload{"gather", predict<Collective::gather>},
    Workload{"goal", predict_goal},
    Workload{"gpcnet", predict_gpcnet},
    Workload{"graph500", predict_graph500},
    Workload{"hacc", predict_hacc},
    Workload{"halo", predict_halo},
    Workload{"hpcg", predict_hpcg},
    Workload{"hpl", predict_hpl},
    Workload{"hplmxp", predict_hplmxp},
    Workload{"lammps", predict_lammps},
    Workload{"mbw_mr", predict_mbw_mr},
    Workload{"nekbone", predict_nekbone},
    Workload{"probe", predict_probe},
    Workload{"reduce", predict<Collective::reduce>},
    Workload{"reduce_scatter", predict<Collective::reduce_scatter>},
    Workload{"reduce_scatter_block", predict<Collective::reduce_scatter_block>},
    Workload{"scatter", predict<Collective::scatter>},
    Workload{"schedule", predict_schedule},
    Workload{"transformer", predict_transformer},
    Workload{"wiring", predict_wiring},
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
