#include "gpu.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "agree.hpp"
#include "gpu_runtimes.hpp"
#include "work.hpp"

namespace dryfly::hpl {
namespace {

std::int64_t element_bytes(int precision) { return precision == DRYFLY_FP64 ? 8 : precision == DRYFLY_FP32 ? 4 : 2; }

}  // namespace

KernelWork KernelWork::product(std::int64_t m, std::int64_t n, std::int64_t k, int precision) {
  return {precision, 2 * m * n * k, element_bytes(precision) * (m * k + k * n + 2 * m * n)};
}

KernelWork KernelWork::triangular_solve(std::int64_t m, std::int64_t n, int precision) {
  return {precision, m * m * n, element_bytes(precision) * (m * m / 2 + 2 * m * n)};
}

KernelWork KernelWork::memory(std::int64_t bytes) { return {DRYFLY_FP64, 0, bytes}; }

// MPI's own view of a node would do, but for libraries to which each rank is alone on its node.
int number_on_node() {
  if (const char* number = std::getenv("MPI_LOCALRANKID")) return std::atoi(number);
  MPI_Comm node = MPI_COMM_NULL;
  int number = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &number);
  MPI_Comm_free(&node);
  return number;
}

std::unique_ptr<Gpu> Gpu::open(std::string* error) {
  for (const auto open_runtime : {open_cuda, open_hip, open_level_zero}) {
    std::string problem;
    std::unique_ptr<Gpu> gpu = open_runtime(&problem);
    if (gpu != nullptr) {
      error->clear();
      return gpu;
    }
    if (error->empty()) *error = problem;
  }
  if (error->empty())
    *error = std::string(kMemoryGpu) +
             "no GPU runtime is found here; accepted are machines with CUDA, HIP or Level Zero under dryfly "
             "run, such as perlmutter-gpu, frontier and aurora";
  return nullptr;
}

void Gpu::check(const char* what, int code) const {
  if (code == 0) return;
  std::fprintf(stderr, "dryfly solver: %s answers error %d of %s\n", what, code, name_.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

bool Gpu::known_to_mpi() const {
  for (const char* name : asked_of_mpi_) {
    const auto ask = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, name));
    if (ask != nullptr && ask() == 1) return true;
  }
  return false;
}

void Gpu::launch(const KernelWork& work, Body body) {
  if (numerics_skipped()) body = [] {};
  dryfly_kernel_announce_work(work.precision, work.operations, work.bytes);
  launch_body(new Body(std::move(body)));
}

void Gpu::call(Body* body) {
  const std::unique_ptr<Body> owned(body);
  (*owned)();
}

namespace {

// Two ranks that have one device, or a GPU and a tile of it: the model of a GPU would give each of them all of it.
// Empty: there are none.
std::string shared_device(const Gpu& gpu, MPI_Comm all) {
  constexpr std::size_t kName = MPI_MAX_PROCESSOR_NAME, kEach = kName + 32;
  int ranks = 1, length = 0;
  MPI_Comm_size(all, &ranks);
  std::vector<char> mine(kEach), every(kEach * static_cast<std::size_t>(ranks));
  MPI_Get_processor_name(mine.data(), &length);
  std::snprintf(mine.data() + kName, kEach - kName, "%s", gpu.address().c_str());
  MPI_Allgather(mine.data(), kEach, MPI_CHAR, every.data(), kEach, MPI_CHAR, all);
  std::map<std::string, std::map<std::string, std::size_t>> taken;  // of each GPU its devices, and by whom
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    const std::string device = std::string(&every[rank * kEach]) + " " + &every[rank * kEach + kName];
    const std::string whole = device.substr(0, device.find(Gpu::kTile));
    for (const auto& [other, by] : taken[whole])
      if (other == device || other == whole || device == whole)
        return kMemoryGpu + std::string("ranks ") + std::to_string(by) + " and " + std::to_string(rank) +
               " have the same GPU, " + (other == device ? device : whole) + "; accepted is one for each rank";
    taken[whole].emplace(device, rank);
  }
  return "";
}

// Whether it is a library that takes the runtime's memory where a variable says so.
bool is_told_to_take_it(const Gpu& gpu) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  return std::string(version).find("Intel(R) MPI") != std::string::npos && gpu.runtime() != "HIP";
}

}  // namespace

void check_gpu_memory(const Gpu& gpu, std::int64_t order, double need_bytes, MPI_Comm all) {
  double usable_bytes = static_cast<double>(gpu.free_bytes());
  MPI_Allreduce(MPI_IN_PLACE, &usable_bytes, 1, MPI_DOUBLE, MPI_MIN, all);
  if (need_bytes <= usable_bytes) return;
  char text[160];
  std::snprintf(text, sizeof text,
                "N = %lld: a process's part of the matrix and its panels need %.4g MB of a GPU, and %.4g MB are free; "
                "accepted is a smaller -N, or more ranks",
                static_cast<long long>(order), need_bytes / 1e6, usable_bytes / 1e6);
  throw BadInput(text);
}

std::unique_ptr<Gpu> open_gpu(bool wanted, Transfers transfers, MPI_Comm all) {
  if (!wanted) return nullptr;
  std::string error;
  std::unique_ptr<Gpu> gpu = Gpu::open(&error);
  agree(error, "--memory gpu: a rank has no GPU", all);
  agree(shared_device(*gpu, all), "--memory gpu: two ranks have one GPU", all);
  if (transfers == Transfers::device && !gpu->known_to_mpi())
    error = "--gpu-transfers device: this MPI library says that it does not take " + gpu->runtime() +
            "'s memory; accepted is staged" + (is_told_to_take_it(*gpu) ? ", or I_MPI_OFFLOAD=1" : "");
  agree(error, "--gpu-transfers device: a rank's MPI library does not take a GPU's memory; accepted is staged", all);
  return gpu;
}

}  // namespace dryfly::hpl
